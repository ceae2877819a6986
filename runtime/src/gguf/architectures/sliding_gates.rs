//! Mixtures of experts in which most layers attend within a window, with heads that are gated (Laguna), or beside the experts
//! (Cohere 2 MoE).

use super::fields::{Fields, HEADS, INTERMEDIATE, KV_HEADS, LAYER_TYPES, RMS, SIZES, WINDOW, one, plain};
use super::mixtures::EXPERT_COUNTS;
use super::names::{DECODER, EXPERTS, GATED_MLP, Names, PRE_NORMS, SHARED_EXPERT, SHARED_EXPERTS};
use super::{Architecture, Rope, Source};
use Source::{
    ByNumber, ForLayers, Has, Key, Lacks, LeadingDense, Maybe, MaybeRows, Most, Or, Rows, WindowPeriod,
};

/// As [`SIZES`], of layers that have as many heads as each says.
const BY_LAYER: &Fields = &[
    ("vocab_size", Rows("token_embd.weight")),
    ("hidden_size", Key(&["embedding_length"])),
    ("num_hidden_layers", Source::Layers),
    ("num_attention_heads", Most("attention.head_count")),
    ("num_attention_heads_per_layer", ForLayers("attention.head_count")),
    ("max_position_embeddings", Key(&["context_length"])),
    ("tie_word_embeddings", Lacks("output.weight")),
];

const LAGUNA: &Fields = &[
    ("sliding_window", Maybe(&["attention.sliding_window"])),
    // As llama.cpp's graph has it for every file.
    ("layer_types", WindowPeriod(4)),
    ("attention_bias", Has("blk.0.attn_q.bias")),
    ("shared_expert_intermediate_size", Key(&["expert_shared_feed_forward_length"])),
    ("moe_routed_scaling_factor", Or("expert_weights_scale", "1.0")),
    ("mlp_layer_types", LeadingDense),
];

/// Of Laguna's gates and router.
const GATES: &Names = &[
    ("blk.{}.attn_gate", "model.layers.{}.self_attn.g_proj"),
    ("blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.experts.e_score_correction_bias"),
];

const COHERE: &Fields = &[
    ("head_dim", Source::HeadDim),
    ("logit_scale", Key(&["logit_scale"])),
    ("layer_norm_eps", Maybe(&["attention.layer_norm_epsilon"])),
    // Where there is one, norms are of this kind.
    ("rms_norm_eps", Maybe(&["attention.layer_norm_rms_epsilon"])),
    ("num_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    ("intermediate_size", Key(&["expert_feed_forward_length"])),
    ("prefix_dense_intermediate_size", MaybeRows("blk.0.ffn_gate.weight")),
    ("num_shared_experts", Or("expert_shared_count", "0")),
    ("first_k_dense_replace", Key(&["leading_dense_block_count"])),
    ("mlp_layer_types", LeadingDense),
    ("norm_topk_prob", Or("expert_weights_norm", "false")),
    ("expert_selection_fn", ByNumber("expert_gating_func", 1, ["\"softmax\"", "\"sigmoid\""])),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        rope: Rope::ByLayers(10_000.0),
        ..plain(
            "laguna",
            &[one("laguna", "LagunaForCausalLM")],
            &[BY_LAYER, INTERMEDIATE, KV_HEADS, HEADS, RMS, EXPERT_COUNTS, LAGUNA],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERT, GATES],
        )
    },
    plain(
        "cohere2moe",
        &[one("cohere2_moe", "Cohere2MoeForCausalLM")],
        &[SIZES, KV_HEADS, WINDOW, LAYER_TYPES, COHERE],
        &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS],
    ),
];
