//! Gemma 3n and Gemma 4: embeddings for each layer, and layers that share keys and values; streams of hidden states, or heads
//! that differ by layer and experts beside the MLP. Gemma 4's drafters, whose layers all read another model's.

use super::fields::{Fields, HEADS, KV_HEADS, LAYER_TYPES, RMS, SIZES, one, plain};
use super::names::{BEFORE_NORMS, DECODER, GATED_MLP, Names, POST_NORMS};
use super::{Architecture, Arrangement, Layout, Part, Rope, Source, Split};
use Source::{
    Differs, Each, Fixed, InLayers, Key, Lacks, Least, Maybe, MaybeRows, NormalShares, OfSliding, Or, Rows,
    WithoutInLayers,
};

/// Gemma 3n's.
const STREAMS: &Fields = &[
    ("intermediate_size", Each("feed_forward_length")),
    ("sliding_window", Key(&["attention.sliding_window"])),
    ("final_logit_softcapping", Maybe(&["final_logit_softcapping"])),
    ("vocab_size_per_layer_input", Rows("per_layer_token_embd.weight")),
    ("hidden_size_per_layer_input", Key(&["embedding_length_per_layer_input"])),
    ("altup_num_inputs", Key(&["altup.num_inputs"])),
    ("altup_active_idx", Key(&["altup.active_idx"])),
    ("num_kv_shared_layers", Key(&["attention.shared_kv_layers"])),
    ("laurel_rank", Rows("blk.0.laurel_l.weight")),
    ("activation_sparsity_pattern", NormalShares("activation_sparsity_scale")),
];

/// Gemma 4's.
const FIELDS: &Fields = &[
    ("intermediate_size", Least("feed_forward_length")),
    ("use_double_wide_mlp", Differs("feed_forward_length")),
    ("head_dim", Key(&["attention.key_length_swa"])),
    ("global_head_dim", Key(&["attention.key_length"])),
    ("num_key_value_heads", OfSliding("attention.head_count_kv", true)),
    ("num_global_key_value_heads", OfSliding("attention.head_count_kv", false)),
    ("attention_k_eq_v", WithoutInLayers("attn_k.weight", "attn_v.weight")),
    ("num_kv_shared_layers", Or("attention.shared_kv_layers", "0")),
    ("sliding_window", Key(&["attention.sliding_window"])),
    ("hidden_size_per_layer_input", Or("embedding_length_per_layer_input", "0")),
    ("vocab_size_per_layer_input", MaybeRows("per_layer_token_embd.weight")),
    ("final_logit_softcapping", Maybe(&["final_logit_softcapping"])),
    ("enable_moe_block", InLayers("ffn_gate_inp.weight")),
    ("num_experts", Maybe(&["expert_count"])),
    ("top_k_experts", Maybe(&["expert_used_count"])),
    ("moe_intermediate_size", Maybe(&["expert_feed_forward_length"])),
];

/// Of Gemma 4's drafters. The converter leaves out the clusters of tokens by which small models choose whose logits they compute:
/// drafts of its files are the best of all tokens.
const DRAFTER: &Fields = &[
    ("backbone_hidden_size", Key(&["embedding_length_out"])),
    ("tie_word_embeddings", Lacks("output.weight")),
    ("use_ordered_embeddings", Fixed("false")),
];

/// Of their own in `text_config`: whether keys are values in the other model shows in the number of heads alone.
const READERS: &Fields = &[("attention_k_eq_v", Differs("attention.head_count_kv"))];

/// Of the embeddings for each layer.
const PER_LAYER: &Names = &[
    ("per_layer_token_embd", "model.embed_tokens_per_layer"),
    ("per_layer_model_proj", "model.per_layer_model_projection"),
    ("per_layer_proj_norm", "model.per_layer_projection_norm"),
    ("blk.{}.inp_gate", "model.layers.{}.per_layer_input_gate"),
    ("blk.{}.proj", "model.layers.{}.per_layer_projection"),
    ("blk.{}.post_norm", "model.layers.{}.post_per_layer_input_norm"),
];

/// Of Gemma 3n's streams, and its residuals of low rank.
const ALTUP: &Names = &[
    ("altup_proj", "model.altup_projections.{}"),
    ("altup_unembd_proj", "model.altup_unembed_projections.{}"),
    ("blk.{}.altup_correct_coef", "model.layers.{}.altup.correction_coefs"),
    ("blk.{}.altup_correct_scale.weight", "model.layers.{}.altup.correct_output_scale"),
    ("blk.{}.altup_predict_coef", "model.layers.{}.altup.prediction_coefs"),
    ("blk.{}.altup_router", "model.layers.{}.altup.modality_router"),
    ("blk.{}.altup_router_norm", "model.layers.{}.altup.router_norm"),
    ("blk.{}.laurel_l", "model.layers.{}.laurel.linear_left"),
    ("blk.{}.laurel_r", "model.layers.{}.laurel.linear_right"),
    ("blk.{}.laurel_post_norm", "model.layers.{}.laurel.post_laurel_norm"),
];

/// Of Gemma 4's experts, and what norms stand around these.
const NAMES: &Names = &[
    ("blk.{}.layer_output_scale.weight", "model.layers.{}.layer_scalar"),
    ("blk.{}.ffn_gate_inp", "model.layers.{}.router.proj"),
    ("blk.{}.ffn_gate_inp.scale", "model.layers.{}.router.scale"),
    ("blk.{}.ffn_down_exps.scale", "model.layers.{}.router.per_expert_scale"),
    ("blk.{}.pre_ffw_norm_2", "model.layers.{}.pre_feedforward_layernorm_2"),
    ("blk.{}.post_ffw_norm_1", "model.layers.{}.post_feedforward_layernorm_1"),
    ("blk.{}.post_ffw_norm_2", "model.layers.{}.post_feedforward_layernorm_2"),
];

/// From the other model's hidden states and embeddings, and back to them.
const PROJECTIONS: &Names =
    &[("nextn.pre_projection", "pre_projection"), ("nextn.post_projection", "post_projection")];

/// Gates come first, in one tensor or two.
const EXPERTS: &[Split] = &[
    Split {
        name: "model.layers.{}.experts.gate_up_proj",
        parts: &[Part::of("blk.{}.ffn_gate_up_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Stacked,
    },
    Split {
        name: "model.layers.{}.experts.gate_up_proj",
        parts: &[Part::of("blk.{}.ffn_gate_exps.weight"), Part::of("blk.{}.ffn_up_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Stacked,
    },
    Split {
        name: "model.layers.{}.experts.down_proj",
        parts: &[Part::of("blk.{}.ffn_down_exps.weight")],
        rows: Arrangement::Behind,
        layout: Layout::Stacked,
    },
];

pub const ALL: &[Architecture] = &[
    Architecture {
        rope: Rope::ByLayers(10_000.0),
        ..plain(
            "gemma3n",
            &[one("gemma3n_text", "Gemma3nForCausalLM")],
            &[SIZES, KV_HEADS, HEADS, RMS, LAYER_TYPES, STREAMS],
            &[DECODER, BEFORE_NORMS, POST_NORMS, GATED_MLP, PER_LAYER, ALTUP],
        )
    },
    Architecture {
        rope: Rope::Proportional,
        splits: EXPERTS,
        ..plain(
            "gemma4",
            &[one("gemma4_text", "Gemma4ForCausalLM")],
            &[SIZES, RMS, LAYER_TYPES, FIELDS],
            &[DECODER, BEFORE_NORMS, POST_NORMS, GATED_MLP, PER_LAYER, NAMES],
        )
    },
    Architecture {
        within: Some(("text_config", DRAFTER)),
        rope: Rope::Proportional,
        ..plain(
            "gemma4-assistant",
            &[
                one("gemma4_assistant", "Gemma4AssistantForCausalLM"),
                one("gemma4_unified_assistant", "Gemma4UnifiedAssistantForCausalLM"),
            ],
            &[SIZES, RMS, LAYER_TYPES, FIELDS, READERS],
            &[DECODER, BEFORE_NORMS, POST_NORMS, GATED_MLP, NAMES, PROJECTIONS],
        )
    },
];
