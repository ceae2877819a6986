//! Blocks of layers as functions over the graph, named as the field names them.

mod activation;
mod attention;
mod cache;
mod feed_forward;
mod relative;
pub mod rope;
mod rotary;
mod sequence;

pub use activation::Activation;
pub use attention::{Attention, causal_mask, causal_padding_mask, padding_mask};
pub use cache::Cache;
pub use feed_forward::FeedForward;
pub use relative::{RelativeBuckets, by_distance, masked_bias, relative_bias, signed_distances};
pub use rope::{RopeParameters, RopeScaling};
pub use rotary::Rotary;
pub use sequence::{at_last, shift_right};
