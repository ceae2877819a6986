//! What models of several kinds of inputs compute of these before a run: which token stands for which feature, which frames of
//! recordings are no padding, and when they sound; where the words of a page lie among the patches of its image.

mod audio_chunks;
mod cameras;
mod frames;
mod page_layout;
mod placeholders;
mod time_rotary;
mod token_types;

use ndarray::{ArrayD, IxDyn};

pub use audio_chunks::AudioChunks;
pub use cameras::camera_token_indices;
pub use frames::{chunk_rows, chunk_windows, unpadded_rows};
pub use page_layout::{PageAxis, PageLayout};
pub use placeholders::{FeatureTokens, feature_token_indices};
pub use time_rotary::TimeRotary;
pub use token_types::token_types;

use crate::Value;

/// Among inputs of which others are computed: some modality is left out, and none of its features stands for a token.
pub(crate) const LEFT_OUT: &str = "left_out";

fn array(shape: &[usize], values: Vec<i64>) -> Value {
    ArrayD::from_shape_vec(IxDyn(shape), values).unwrap_or_else(|_| ArrayD::zeros(IxDyn(shape))).into()
}
