//! Blocks of layers as functions over the graph, named as the field names them.

mod activation;
mod alibi;
mod attention;
mod cache;
mod counted;
mod experts;
mod feed_forward;
mod heads;
mod layers;
mod learned;
mod norms;
mod pooling;
mod positions;
mod relative;
pub mod rope;
mod rotary;
mod sequence;
mod windows;

pub use activation::Activation;
pub use alibi::{
    alibi, alibi_by_key, alibi_fractions, alibi_rounded, alibi_slopes, doubly_masked, with_sinks,
};
pub use attention::{
    Attention, causal_mask, causal_mask_or, causal_padding_mask, padding_mask, parts_of_one,
};
pub use cache::Cache;
pub use counted::{counted_positions, empty_at, sinusoidal};
pub use experts::{
    experts, is_sparse, is_sparse_within, mixed, of_best_groups, shares, shares_of_logits, sparse_mixer,
    stacked_linear, top_k,
};
pub use feed_forward::FeedForward;
pub use heads::{
    clipped, group_parts, grouped_linear, merge_heads, parts, repeated_halves, softcap, split_heads,
};
pub use layers::{is_layer_kind, layer_rope, layer_scale, of_layer, rope_of, rope_with, slides};
pub use learned::{differential_factor, learned_activation};
pub use norms::{
    layer_norm_by_head, layer_norm_each_head, layer_norm_if, layer_norm_no_bias, layer_norm_offset,
    layer_norm_plain, rms_norm_offset, rms_norm_plain,
};
pub use pooling::{at_first, last_token};
pub use relative::{RelativeBuckets, by_distance, masked_bias, relative_bias, signed_distances};
pub use rope::{RopeParameters, RopeScaling};
pub use rotary::Rotary;
pub use sequence::{at_last, shift_right, wrap_right};
pub use windows::{Windows, bias_with_class, merged_squares};
