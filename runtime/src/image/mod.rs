//! Images to the tensors that models take, as a checkpoint's own processor file says.
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

mod antialiased;
mod anyres;
mod canvas_positions;
mod centred_positions;
mod codes;
mod draw;
mod fit_tiles;
mod fourier_features;
mod grids;
mod interpolate;
mod interpolation;
mod item;
mod joined_frames;
mod jpeg;
mod keypoints;
mod latent_grids;
mod layout;
mod local_views;
mod mask;
mod merge_sizes;
mod mrope;
mod naflex_squares;
mod native_sizes;
mod nearest_grid;
mod nested_squares;
mod newline_rows;
mod normalize;
mod padded;
mod patches;
mod pooled_rows;
mod position_squares;
mod processor;
mod processors;
mod prompts;
mod radio_patches;
mod read;
mod relative_positions;
mod resize;
mod rgb_image;
mod rope2d;
mod settings;
mod size;
mod step;
mod text_size;
mod tile_routes;
mod tiles;
mod trimaps;
mod video_coords;
#[cfg(feature = "video")]
mod video_patches;
mod warp;

pub use anyres::{
    AnyRes, image_segments, image_token_indices, map_places, marked_image_indices, tile_numbers,
};
pub use canvas_positions::CanvasPositions;
pub use centred_positions::{
    bicubic_ids, bicubic_weights, centred_bilinear_ids, centred_bilinear_weights, zero_padded_bilinear_ids,
    zero_padded_bilinear_weights,
};
pub use codes::{code_tokens, visual_tokens};
pub use fit_tiles::FitTiles;
pub use fourier_features::FourierFeatures;
pub use grids::{
    bilinear_ids, bilinear_weights, patch_frames, patch_images, patch_neighbours, patch_position_ids,
    patch_rows, patch_windows,
};
pub use interpolate::{Interpolated, Interpolation};
#[cfg(feature = "video")]
pub(crate) use interpolation::resampled;
pub use interpolation::{
    antialiased_shares, grid_interpolation_weights, interpolation_weights, patch_interpolation_weights,
};
pub use joined_frames::joined_frames;
pub use keypoints::KeypointSelection;
pub use latent_grids::{centred_position_ids, first_image_tokens};
pub use layout::Layout;
pub use local_views::{blank_crop, local_view_rows};
pub use mask::Mask;
pub use merge_sizes::{middle_patches, sized_patch_frames, sized_patch_position_ids};
pub use mrope::{
    padding_positions, rope_deltas, rope_deltas_by_seconds, rope_deltas_of_joined, rope_deltas_of_marked,
    rope_index, rope_index_by_seconds, rope_index_of_joined, rope_index_of_marked,
};
pub use naflex_squares::naflex_squares;
pub use native_sizes::{
    native_ended_rows, native_patch_images, native_patch_position_ids, native_patch_rows,
};
pub use nested_squares::{nested_patch_images, nested_patch_rows, nested_position_ids};
pub use newline_rows::NewlineRows;
pub use padded::{
    fractional_position_ids, patch_attention_mask, unpadded_image_rows, unpadded_patches,
    whole_fractional_position_ids, whole_patch_attention_mask,
};
pub use pooled_rows::pooled_rows;
pub use position_squares::{placed_patches, position_squares};
pub use processor::ImageProcessor;
pub use prompts::{
    NO_POINT, NO_PROMPT, no_memory, no_memory_offsets, no_pointer_offsets, prompt_boxes, prompt_labels,
    prompt_masks, prompt_or_no_point_labels, prompt_points, text_queries, text_starts,
};
pub use radio_patches::RadioPatches;
pub use read::MAX_PIXELS;
pub use relative_positions::relative_position_index;
pub use resize::Filter;
pub use rgb_image::Image;
pub use rope2d::{AngleFunction, rope2d_table};
pub use size::{Pixels, Size};
pub use step::{SmallImages, Step};
pub use text_size::{LimitedSide, TextSize};
pub use tile_routes::{tile_route_rows, tile_rows, tile_shares};
pub use tiles::{Canvas, DensePages};
pub use video_coords::{video_cosines, video_sines};
#[cfg(feature = "video")]
pub use video_patches::{FrameSampling, VideoPatches, VideoProcessor};
pub use warp::CenterScale;

pub(crate) use read::{broken, checked_size, guarded, limits};

#[cfg(test)]
pub(crate) mod tests;
