//! Blocks that models share, as functions over the graph: attention, masks, position embeddings, norms, mixtures of experts,
//! patches, windows, convolutions, pooling. Each names the paper or the class of `transformers` that defines it.

mod activation_sparsity;
mod alibi;
mod altup;
mod anti_aliased;
mod any_windows;
mod attention;
mod backbone;
mod block_sparse;
mod cache;
mod cell_selection;
mod chunked_attention;
mod clipped_linear;
mod convolution;
mod cross_attention;
mod dac;
mod decomposed_rel_pos;
mod deformable_attention;
mod delta;
mod detection;
mod differential;
pub mod diffusion;
mod dpt;
mod dynamic_rope;
mod edge_distances;
mod edge_padding;
mod embeddings;
mod experts;
mod feature_encoder;
mod feed_forward;
mod hashing;
mod heads;
mod hyper_connections;
mod indexer;
mod inverted_residual;
mod istft;
mod keypoints;
mod latent_attention;
mod layer_types;
mod lightning;
mod local_blocks;
mod lstm;
mod mamba;
mod mamba2;
mod mask_queries;
mod mask_units;
mod masked_embedder;
mod masked_lm;
mod memory_attention;
mod memory_encoder;
mod metric_bins;
mod mlp;
mod mlstm;
mod mrope;
mod multi_head;
mod nearest_mask;
mod norms;
mod packed_attention;
mod patch_pooling;
mod patches;
mod phrases;
mod pixel_patches;
mod pooled_output;
mod pooling;
mod qa_span;
mod quantized_cache;
mod recurrence;
mod relative;
mod rg_lru;
pub mod rope;
mod rotary;
mod routers;
mod rwkv;
mod seanet;
mod shifted_windows;
mod similarity;
mod sinusoidal;
mod sliding_window;
mod split_windows;
#[cfg(test)]
pub(crate) mod testing;
mod time_series;
mod token_shift;
mod transient_global;
mod tubelets;
mod two_way;
mod uper_head;
mod vector_quantization;
mod weighted_layer_sum;
mod windows;
mod xielu;
mod zamba;

pub use crate::graph::{Activation, Attention, LinearAttention, SelectiveScan};
pub use activation_sparsity::{gaussian_topk, normal_quantile, normal_share};
pub use alibi::{
    alibi, alibi_bfloat16, alibi_by_key, alibi_slopes, alibi_slopes_with_max, attention_sinks,
    causal_and_padding_mask,
};
pub use altup::AltUp;
pub use anti_aliased::anti_aliased_snake;
pub use any_windows::{AnyWindows, patch_merge_any};
pub use attention::{
    bidirectional_mask, causal_mask, causal_mask_or, causal_padding_mask, decoder_mask, encoder_mask,
    or_mask, padding_mask, same_segment_mask, trailing_window_mask, zero_unseeing,
};
pub use backbone::BackboneStages;
pub use block_sparse::BlockSparse;
pub use cache::{Cache, logits_to_keep};
pub use cell_selection::{CellSelection, same_cell};
pub use chunked_attention::chunked_causal_mask;
pub use clipped_linear::clipped_linear;
pub use convolution::{
    conv_bn, conv_bn_act, conv_bn_at, global_avg_pool, glu_channels, layer_scale, layer_scale_2d,
    learnable_affine, squeeze_excite, weight_norm, weight_norm_by_channel, weight_norm_by_hook,
};
pub use cross_attention::{CrossAttention, CrossKv};
pub use dac::{DacDecoder, DacEncoder, Snake};
pub use decomposed_rel_pos::{decomposed_rel_pos, interpolated_rel_pos};
pub use deformable_attention::{
    DeformableAttention, gather_rows, inverse_sigmoid, reference_points, refine_boxes,
};
pub use delta::{DeltaInputs, DeltaRule, repeat_heads};
pub use detection::{
    anchors, concat_heads, coordinate_embeddings, location_quality, mlp_prediction_head,
    quadrilateral_anchors, quadrilateral_boxes, refine_extents, sine_grid, sine_positions,
};
pub use differential::{differential_lambda, differential_values};
pub use dpt::{FeatureFusion, reassemble};
pub use edge_distances::EdgeDistances;
pub use edge_padding::pad_edges;
pub use embeddings::{add_embedding, bbox_embeddings};
pub use experts::{
    BatchedExperts, SelectedExperts, add_shared_expert, combine_experts, combine_weighted_inputs, experts,
    experts_from, ungated_experts,
};
pub use feature_encoder::{FeatureEncoder, ReceptiveField};
pub use feed_forward::FeedForward;
pub use hashing::{arc_cosine, collision_probability};
pub use heads::{
    clip_qkv, gate_heads, grouped_linear, merge_heads, norm_per_head, softcap, split_heads, split_last,
    split_qkv_groups,
};
pub use hyper_connections::HyperConnection;
pub use indexer::{Indexer, select_keys};
pub use inverted_residual::{InvertedResidual, make_divisible};
pub use istft::istft_head;
pub use keypoints::{log_optimal_transport, log_sum_exp, mutual_matches, other_of_pair, suppress_non_maxima};
pub use latent_attention::LatentAttention;
pub use layer_types::{is_layer_kind, layer_type_rope, of_layer, rope_scaled, rope_with};
pub use lightning::{lightning_attention, lightning_slopes};
pub use local_blocks::{LocalBlocks, block_local_mask};
pub use lstm::Lstm;
pub use mamba::{BcDtNorm, Mamba};
pub use mamba2::{GatedNorm, Mamba2, time_step_limit};
pub use mask_queries::{mask_boxes, mask_logits};
pub use mask_units::{MaskUnitAttention, max_pool_tokens, reorder_tokens, unroll_order};
pub use masked_embedder::MaskedEmbedder;
pub use masked_lm::masked_lm_decoder;
pub use memory_attention::{MemoryAttention, ObjectMemory};
pub use memory_encoder::{MemoryEncoder, resize_antialiased};
pub use metric_bins::{attract, log_binomial_softmax, sort_channels};
pub use mlp::{FusedGatedMlp, GatedMlp, Mlp, adjusted_width, clamped_swiglu, glu, sigmoid_gate};
pub use mlstm::Mlstm;
pub use mrope::{MropeOrder, MropeSections};
pub use multi_head::MultiHead;
pub use nearest_mask::{nearest_mask, valid_ratio};
pub use norms::{
    layer_norm_2d, layer_norm_by_head, layer_norm_by_head_biased, layer_norm_no_affine, layer_norm_offset,
    layer_norm_optional_affine, layer_norm_per_head, rms_norm_no_affine, rms_norm_offset, rms_or_layer_norm,
};
pub use packed_attention::packed_attention;
pub use patch_pooling::pool_patches;
pub use patches::{
    expand_tokens, flatten_feature_map, interpolable_pixel_values, interpolate_by_weights,
    interpolate_pos_encoding, mask_patches, mean_patches, merge_features, patch_embedding, pixel_shuffle,
    pixel_unshuffle, prepend_tokens, unflatten_feature_map,
};
pub use phrases::phrases;
pub use pixel_patches::PixelPatches;
pub use pooled_output::PooledOutput;
pub use pooling::{
    argmax_pool, cls_dense_pool, eos_pool, last_token_pool, mask_hidden_states, masked_mean_pool,
    statistics_pool, token_mask,
};
pub use qa_span::qa_span;
pub use recurrence::{CausalConv, RecurrentLayer, recurrent_mask};
pub use relative::{
    RelativeBuckets, bias_by_distance, disentangled_scores, distance_embeddings, grid_distance_bias,
    masked_bias, relative_bias, relative_key_scores, relative_shift, signed_distances,
};
pub use rg_lru::{RgLru, bfloat16_normalizer};
pub use rope::{RopeParameters, RopeScaling};
pub use rotary::Rotary;
pub use routers::{
    GroupLimitedTopk, Routing, softmax_after_topk, softmax_topk, sparse_mixer, top1_within_capacity, topk_by,
};
pub use rwkv::{time_mix, time_shift, wkv};
pub use seanet::{EdgePadding, Seanet, SeanetConv, SeanetKernel, SeanetNorm};
pub use shifted_windows::{ShiftedWindows, merge_patches};
pub use similarity::{contrastive_logits, l2_normalize, nearest_codes};
pub use sinusoidal::{
    positions_after_padding, positions_from_mask, sinusoidal, sinusoidal_after_padding, zero_padding,
};
pub use sliding_window::SlidingWindow;
pub use split_windows::{SplitWindows, join_windows};
pub use time_series::{ScaledSeries, patchify_series, scale_series};
pub use token_shift::{shift_right, shift_tokens_right};
pub use transient_global::{TransientGlobal, TransientGlobalContext};
pub use tubelets::{sinusoidal_in_turns, tubelet_embedding};
pub use two_way::{TwoWayTransformer, mask_decoder_mlp};
pub use uper_head::{UperHead, adaptive_avg_pool};
pub use vector_quantization::{bound_to_levels, finite_scalar_quantize, residual_quantize};
pub use weighted_layer_sum::weighted_layer_sum;
pub use windows::{
    Windows, interpolate_relative_bias_with_cls, patch_merge, relative_bias_with_cls,
    relative_position_index_with_cls,
};
pub use xielu::learned_activation;
pub use zamba::ZambaMamba;
