//! The sizes of images.

use serde::{Deserialize, Deserializer, Serialize};

/// Height and width, in pixels or patches: `224`, `[224, 224]` or `{"height": 224, "width": 224}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImageSize {
    /// From top to bottom.
    pub height: usize,
    /// From left to right.
    pub width: usize,
}

impl ImageSize {
    /// As high as wide.
    pub const fn square(size: usize) -> Self {
        Self { height: size, width: size }
    }

    /// Height times width.
    pub const fn area(self) -> usize {
        self.height.saturating_mul(self.width)
    }
}

impl<'de> Deserialize<'de> for ImageSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number, or a list or map of height and width")]
        enum Form {
            Square(usize),
            List([usize; 2]),
            Map { height: usize, width: usize },
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Square(size) => Self::square(size),
            Form::List([height, width]) | Form::Map { height, width } => Self { height, width },
        })
    }
}

/// One length for height and width: `448`, `[448, 448]` or `{"height": 448, "width": 448}`.
///
/// # Errors
/// When they are two.
pub fn square_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let ImageSize { height, width } = ImageSize::deserialize(deserializer)?;
    if height != width {
        let problem = format!("expected height and width to be the same, not {height} and {width}");
        return Err(serde::de::Error::custom(problem));
    }
    Ok(height)
}
