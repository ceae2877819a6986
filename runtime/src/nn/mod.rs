//! Blocks of layers as functions over the graph, named as the field names them.

mod activation;
mod attention;

pub use activation::Activation;
pub use attention::{Attention, causal_padding_mask, padding_mask};
