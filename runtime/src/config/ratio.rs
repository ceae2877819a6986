//! Ratios of whole numbers.

use serde::{Deserialize, Deserializer, Serialize};

/// A ratio of whole numbers, as a text: `3/8`, of which neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The number above the line.
    pub numerator: usize,
    /// The number below it.
    pub denominator: usize,
}

impl Ratio {
    /// That share of a number, rounded down.
    pub fn of(self, number: usize) -> usize {
        number.saturating_mul(self.numerator) / self.denominator.max(1)
    }
}

impl std::str::FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
        let parts = text.split_once('/').and_then(|(above, below)| number(above).zip(number(below)));
        let (numerator, denominator) =
            parts.ok_or_else(|| format!("`{text}` is no ratio of whole numbers, as `3/8` is"))?;
        Ok(Self { numerator, denominator })
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl Serialize for Ratio {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_text_of_two_numbers() {
        let ratio = |text: &str| serde_json::from_str::<Ratio>(text).map_err(|error| error.to_string());
        assert_eq!(ratio("\"3/8\"").map(|ratio| (ratio.of(24), ratio.of(9))), Ok((9, 3)));
        assert_eq!(serde_json::to_string(&Ratio { numerator: 4, denominator: 8 }).unwrap(), "\"4/8\"");
        for text in ["\"3\"", "\"3/0\"", "\"-1/2\"", "\"1/2/4\""] {
            assert!(ratio(text).unwrap_err().contains("is no ratio of whole numbers, as `3/8` is"), "{text}");
        }
    }
}
