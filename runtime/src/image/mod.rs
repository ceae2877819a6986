//! Pictures to the tensors that models take, as a checkpoint's own processor file says.
//!
//! ```no_run
//! # fn main() -> weft::Result<()> {
//! use weft::image::{Image, ImageProcessor};
//!
//! let checkpoint = weft::hub::Checkpoint::open("path/to/checkpoint")?;
//! let processor = ImageProcessor::from_checkpoint(&checkpoint)?;
//! let values = processor.process(&[Image::open("cat.jpg")?])?;
//! println!("{:?}", values["pixel_values"].shape()); // [1, 3, 224, 224]
//! # Ok(())
//! # }
//! ```

mod anyres;
mod draw;
mod interpolation;
mod jpeg;
mod normalize;
mod patches;
mod processor;
mod processors;
mod read;
mod resize;
mod rgb_image;
mod rope2d;
mod settings;
mod size;
mod tiles;

pub use anyres::{AnyRes, image_segments, image_token_indices};
pub use interpolation::{interpolation_weights, patch_interpolation_weights};
pub use processor::ImageProcessor;
pub use processors::Layout;
pub use read::MAX_PIXELS;
pub use resize::Filter;
pub use rgb_image::Image;
pub use rope2d::{AngleFunction, rope2d_table};
pub use settings::Settings;
pub use size::{Pixels, Size};

pub(crate) use read::{broken, checked_size, limits};

#[cfg(test)]
pub(crate) mod tests;
