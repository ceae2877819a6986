//! T5's `feed_forward_proj`, such as `relu` or `gated-gelu`: activation, and whether it is a gated linear unit.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use super::Activation;

/// A feed-forward layer's activation function, and whether a second projection is multiplied by it; the reference is
/// `transformers.T5Config.feed_forward_proj`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedForward {
    /// Whether there is a second projection.
    pub gated: bool,
    /// The activation function.
    pub activation: Activation,
}

impl<'de> Deserialize<'de> for FeedForward {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let name = text.strip_prefix("gated-");
        // The reference's own exception.
        let function = if text == "gated-gelu" { "gelu_new" } else { name.unwrap_or(&text) };
        let known = Activation::deserialize(serde::de::value::StrDeserializer::<D::Error>::new(function));
        let activation = known.map_err(|_| {
            D::Error::custom(format!("`{text}` is neither an activation function nor one behind `gated-`"))
        })?;
        Ok(Self { gated: name.is_some(), activation })
    }
}

impl Serialize for FeedForward {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = serde_json::to_value(self.activation).map_err(ser::Error::custom)?;
        let gated = if self.gated { "gated-" } else { "" };
        serializer.collect_str(&format_args!("{gated}{}", name.as_str().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_the_reference_does() {
        let of = |text: &str| serde_json::from_value::<FeedForward>(text.into());
        assert_eq!(of("relu").unwrap(), FeedForward { gated: false, activation: Activation::Relu });
        assert_eq!(of("gated-gelu").unwrap(), FeedForward { gated: true, activation: Activation::GeluNew });
        assert_eq!(of("gated-silu").unwrap(), FeedForward { gated: true, activation: Activation::Silu });
        let written = |kind: &str| serde_json::to_value(of(kind).unwrap()).unwrap();
        assert_eq!((written("relu"), written("gated-silu")), ("relu".into(), "gated-silu".into()));
        assert!(of("gated-what").unwrap_err().to_string().contains("gated-what"));
    }
}
