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

mod classes;
mod draw;
mod jpeg;
mod packing;
mod patches;
mod picture;
mod planes;
mod processor;
mod read;
mod resize;
mod settings;
mod shares;
mod size;
mod tiles;
mod turns;

pub use classes::Layout;
pub use packing::{Packing, image_places, image_runs};
pub use picture::Image;
pub use processor::ImageProcessor;
pub use read::MAX_PIXELS;
pub use resize::Filter;
pub use settings::Settings;
pub use shares::{line_shares, patch_shares};
pub use size::{Pixels, Size};
pub use turns::{Turn, patch_turns};

pub(crate) use read::{broken, checked_size, limits};

#[cfg(test)]
pub(crate) mod tests;
