//! T5's `feed_forward_proj`, such as `relu` or `gated-gelu`: activation, and whether it is a gated linear unit.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_the_reference_does() {
        let of = |text: &str| serde_json::from_value::<FeedForward>(text.into());
        assert_eq!(of("relu").unwrap(), FeedForward { gated: false, activation: Activation::Relu });
        assert_eq!(of("gated-gelu").unwrap(), FeedForward { gated: true, activation: Activation::GeluNew });
        assert_eq!(of("gated-silu").unwrap(), FeedForward { gated: true, activation: Activation::Silu });
        assert!(of("gated-what").unwrap_err().to_string().contains("gated-what"));
    }
}
