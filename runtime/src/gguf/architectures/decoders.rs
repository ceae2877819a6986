//! The table of architectures.

use super::names::{
    BERT, BLOOM, DECODER, EXPERTS, FOUR_NORMS, FUSED_MLP, GATED_MLP, GPT_NEOX, GPT2, MIXTRAL, MPT, PHI,
    PRE_NORMS, SHARED_EXPERT, STARCODER2,
};
use super::{Architecture, Change, Model, Names, Rope, Source, When};
use Source::{Fixed, Has, HeadDim, Key, Lacks, Maybe, QueryScalar, Rows};

type Fields = [(&'static str, Source)];
type Changes = [(&'static str, Change)];

/// What every decoder's configuration has.
const SIZES: &Fields = &[
    ("vocab_size", Rows("token_embd.weight")),
    ("hidden_size", Key(&["embedding_length"])),
    ("num_hidden_layers", Key(&["block_count"])),
    ("num_attention_heads", Key(&["attention.head_count"])),
    ("max_position_embeddings", Key(&["context_length"])),
    ("tie_word_embeddings", Lacks("output.weight")),
];

const INTERMEDIATE: &Fields = &[("intermediate_size", Key(&["feed_forward_length"]))];
const KV_HEADS: &Fields =
    &[("num_key_value_heads", Key(&["attention.head_count_kv", "attention.head_count"]))];
const HEADS: &Fields = &[("head_dim", HeadDim)];
const RMS: &Fields = &[("rms_norm_eps", Key(&["attention.layer_norm_rms_epsilon"]))];
const LAYER_NORM: &Fields = &[("layer_norm_eps", Key(&["attention.layer_norm_epsilon"]))];
const BIASES: &Fields =
    &[("attention_bias", Has("blk.0.attn_q.bias")), ("mlp_bias", Has("blk.0.ffn_down.bias"))];
const WINDOW: &Fields = &[("sliding_window", Source::Window)];
const EXPERT_COUNTS: &Fields = &[
    ("num_experts", Key(&["expert_count"])),
    ("num_experts_per_tok", Key(&["expert_used_count"])),
    ("moe_intermediate_size", Key(&["expert_feed_forward_length"])),
];

const ROTARY: &Changes = &[
    ("attn_q.weight", Change::RotaryQueries),
    ("attn_q.bias", Change::RotaryQueries),
    ("attn_k.weight", Change::RotaryKeys),
    ("attn_k.bias", Change::RotaryKeys),
];
const NORMS_PLUS_ONE: &Changes = &[("norm.weight", Change::PlusOne)];
const SPLIT_QKV: &Changes = &[("attn_qkv.weight", Change::SplitHeads), ("attn_qkv.bias", Change::SplitHeads)];

const fn one(model_type: &'static str, class: &'static str) -> Model {
    Model { model_type, class, when: When::Always }
}

/// A decoder without changes, of one model.
const fn plain(
    name: &'static str,
    models: &'static [Model],
    fields: &'static [&'static Fields],
    tensors: &'static [&'static Names],
) -> Architecture {
    Architecture { name, models, fields, rope: Rope::Heads, tensors, changes: &[] }
}

pub const ALL: &[Architecture] = &[
    Architecture {
        changes: ROTARY,
        ..plain(
            "llama",
            &[
                Model { model_type: "llama", class: "LlamaForCausalLM", when: When::Lacks("expert_count") },
                Model {
                    model_type: "mistral",
                    class: "MistralForCausalLM",
                    when: When::Lacks("expert_count"),
                },
                Model { model_type: "mixtral", class: "MixtralForCausalLM", when: When::Has("expert_count") },
            ],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                BIASES,
                &[
                    ("hidden_act", Fixed("\"silu\"")),
                    ("num_local_experts", Maybe(&["expert_count"])),
                    ("num_experts_per_tok", Maybe(&["expert_used_count"])),
                    // Written for no model of this name, with window or without: as llama.cpp, none.
                    ("sliding_window", Fixed("null")),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, MIXTRAL],
        )
    },
    Architecture {
        changes: ROTARY,
        ..plain(
            "smollm3",
            &[one("smollm3", "SmolLM3ForCausalLM")],
            &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, BIASES],
            &[DECODER, PRE_NORMS, GATED_MLP],
        )
    },
    Architecture {
        changes: ROTARY,
        ..plain(
            "arcee",
            &[one("arcee", "ArceeForCausalLM")],
            &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, BIASES],
            &[DECODER, PRE_NORMS, GATED_MLP],
        )
    },
    plain(
        "qwen2",
        &[one("qwen2", "Qwen2ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, RMS],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    plain(
        "qwen3",
        &[one("qwen3", "Qwen3ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, &[("attention_bias", Has("blk.0.attn_q.bias"))]],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    Architecture {
        changes: &[("ffn_gate_inp_shexp.weight", Change::Flattened)],
        ..plain(
            "qwen2moe",
            &[one("qwen2_moe", "Qwen2MoeForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                RMS,
                EXPERT_COUNTS,
                &[
                    ("shared_expert_intermediate_size", Key(&["expert_shared_feed_forward_length"])),
                    ("qkv_bias", Has("blk.0.attn_q.bias")),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERT],
        )
    },
    plain(
        "qwen3moe",
        &[one("qwen3_moe", "Qwen3MoeForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            HEADS,
            RMS,
            EXPERT_COUNTS,
            // As llama.cpp's graph has it for every file.
            &[("norm_topk_prob", Fixed("true")), ("attention_bias", Has("blk.0.attn_q.bias"))],
        ],
        &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS],
    ),
    Architecture {
        changes: NORMS_PLUS_ONE,
        ..plain(
            "gemma",
            &[one("gemma", "GemmaForCausalLM")],
            &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS],
            &[DECODER, PRE_NORMS, GATED_MLP],
        )
    },
    Architecture {
        changes: NORMS_PLUS_ONE,
        ..plain(
            "gemma2",
            &[one("gemma2", "Gemma2ForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                &[
                    ("sliding_window", Key(&["attention.sliding_window"])),
                    ("attn_logit_softcapping", Key(&["attn_logit_softcapping"])),
                    ("final_logit_softcapping", Key(&["final_logit_softcapping"])),
                    ("query_pre_attn_scalar", QueryScalar(46)),
                ],
            ],
            &[DECODER, FOUR_NORMS, GATED_MLP],
        )
    },
    Architecture {
        rope: Rope::ByLayers(10_000.0),
        changes: NORMS_PLUS_ONE,
        ..plain(
            "gemma3",
            &[one("gemma3_text", "Gemma3ForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                &[
                    ("sliding_window", Key(&["attention.sliding_window"])),
                    ("final_logit_softcapping", Maybe(&["final_logit_softcapping"])),
                    ("query_pre_attn_scalar", QueryScalar(62)),
                ],
            ],
            &[DECODER, FOUR_NORMS, GATED_MLP],
        )
    },
    plain(
        "phi2",
        &[one("phi", "PhiForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, LAYER_NORM],
        &[DECODER, PRE_NORMS, PHI],
    ),
    plain(
        "phi3",
        &[one("phi3", "Phi3ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, RMS, WINDOW],
        &[DECODER, PRE_NORMS, FUSED_MLP],
    ),
    plain(
        "starcoder2",
        &[one("starcoder2", "Starcoder2ForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            &[
                ("norm_epsilon", Key(&["attention.layer_norm_epsilon"])),
                ("use_bias", Has("blk.0.attn_q.bias")),
            ],
            WINDOW,
        ],
        &[DECODER, PRE_NORMS, STARCODER2],
    ),
    Architecture {
        rope: Rope::Absent,
        changes: &[
            ("attn_qkv.weight", Change::Transposed),
            ("attn_output.weight", Change::Transposed),
            ("ffn_up.weight", Change::Transposed),
            ("ffn_down.weight", Change::Transposed),
        ],
        ..plain(
            "gpt2",
            &[one("gpt2", "GPT2LMHeadModel")],
            &[
                SIZES,
                INTERMEDIATE,
                &[("layer_norm_epsilon", Key(&["attention.layer_norm_epsilon"]))],
                &[("n_inner", Key(&["feed_forward_length"]))],
            ],
            &[GPT2],
        )
    },
    Architecture {
        changes: SPLIT_QKV,
        ..plain(
            "gptneox",
            &[one("gpt_neox", "GPTNeoXForCausalLM")],
            &[SIZES, INTERMEDIATE, LAYER_NORM, &[("use_parallel_residual", Key(&["use_parallel_residual"]))]],
            &[GPT_NEOX],
        )
    },
    Architecture {
        rope: Rope::Absent,
        changes: SPLIT_QKV,
        ..plain(
            "bloom",
            &[one("bloom", "BloomForCausalLM")],
            &[SIZES, &[("layer_norm_epsilon", Key(&["attention.layer_norm_epsilon"]))]],
            &[BLOOM],
        )
    },
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "mpt",
            &[one("mpt", "MptForCausalLM")],
            &[SIZES, &[("layer_norm_epsilon", Key(&["attention.layer_norm_epsilon"]))]],
            &[MPT],
        )
    },
    plain(
        "stablelm",
        &[one("stablelm", "StableLmForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            LAYER_NORM,
            &[
                ("use_qkv_bias", Has("blk.0.attn_q.bias")),
                ("use_parallel_residual", Lacks("blk.0.ffn_norm.weight")),
            ],
        ],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    plain(
        "command-r",
        &[one("cohere", "CohereForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            LAYER_NORM,
            &[("logit_scale", Key(&["logit_scale"])), ("use_qk_norm", Has("blk.0.attn_q_norm.weight"))],
        ],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    Architecture {
        changes: ROTARY,
        ..plain(
            "olmo",
            &[one("olmo", "OlmoForCausalLM")],
            &[SIZES, INTERMEDIATE, KV_HEADS, &[("clip_qkv", Maybe(&["attention.clamp_kqv"]))]],
            &[DECODER, GATED_MLP],
        )
    },
    plain(
        "olmo2",
        &[one("olmo2", "Olmo2ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, RMS],
        &[
            DECODER,
            &[
                ("blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"),
                ("blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"),
            ],
            GATED_MLP,
        ],
    ),
    Architecture {
        changes: ROTARY,
        ..plain(
            "granite",
            &[one("granite", "GraniteForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                RMS,
                BIASES,
                &[
                    ("embedding_multiplier", Key(&["embedding_scale"])),
                    ("residual_multiplier", Key(&["residual_scale"])),
                    ("attention_multiplier", Key(&["attention.scale"])),
                    ("logits_scaling", Key(&["logit_scale"])),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP],
        )
    },
    Architecture {
        changes: NORMS_PLUS_ONE,
        ..plain(
            "nemotron",
            &[one("nemotron", "NemotronForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                &[("norm_eps", Key(&["attention.layer_norm_epsilon"]))],
                BIASES,
            ],
            &[DECODER, PRE_NORMS, GATED_MLP],
        )
    },
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "bert",
            &[one("bert", "BertModel")],
            &[SIZES, INTERMEDIATE, LAYER_NORM, &[("type_vocab_size", Rows("token_types.weight"))]],
            &[BERT],
        )
    },
];
