//! Decoders with queries, keys and values of their own.

use super::fields::{
    BIASES, Changes, GRANITE, HEADS, INTERMEDIATE, KV_HEADS, LAYER_NORM, LAYER_TYPES, RMS, ROTARY, SIZES,
    WINDOW, one, plain,
};
use super::names::{
    BEFORE_NORMS, DECODER, FUSED_MLP, GATED_MLP, GLM4_NORMS, HUNYUAN_NORMS, LATENT, MIXTRAL, Names, PHI,
    POST_ATTENTION_NORM, POST_NORMS, PRE_NORMS, STARCODER2, UNGATED_MLP,
};
use super::{Architecture, Change, Listed, Model, Rope, Source, When};
use Source::{Difference, Fixed, Has, HeadDim, Key, Lacks, Maybe, OrNull, QueryScalar};

const NORMS_PLUS_ONE: &Changes = &[("norm.weight", Change::PlusOne)];

/// The parameters of Apertus' activation function.
const XIELU: &[Listed] = &[
    Listed { name: "model.layers.{}.mlp.act_fn.alpha_n", key: "xielu.alpha_n", shape: &[1] },
    Listed { name: "model.layers.{}.mlp.act_fn.alpha_p", key: "xielu.alpha_p", shape: &[1] },
    Listed { name: "model.layers.{}.mlp.act_fn.beta", key: "xielu.beta", shape: &[] },
    Listed { name: "model.layers.{}.mlp.act_fn.eps", key: "xielu.eps", shape: &[] },
];

/// Of Apertus' norms.
const APERTUS: &Names = &[
    ("blk.{}.attn_norm", "model.layers.{}.attention_layernorm"),
    ("blk.{}.ffn_norm", "model.layers.{}.feedforward_layernorm"),
];

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
            &[DECODER, BEFORE_NORMS, POST_NORMS, GATED_MLP],
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
            &[DECODER, BEFORE_NORMS, POST_NORMS, GATED_MLP],
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
        &[
            Model {
                model_type: "olmo2",
                class: "Olmo2ForCausalLM",
                when: When::Lacks("attention.sliding_window"),
            },
            Model {
                model_type: "olmo3",
                class: "Olmo3ForCausalLM",
                when: When::Has("attention.sliding_window"),
            },
        ],
        &[SIZES, INTERMEDIATE, KV_HEADS, RMS, WINDOW, LAYER_TYPES],
        &[DECODER, POST_NORMS, GATED_MLP],
    ),
    Architecture {
        changes: ROTARY,
        ..plain(
            "granite",
            &[one("granite", "GraniteForCausalLM")],
            &[SIZES, INTERMEDIATE, KV_HEADS, RMS, BIASES, GRANITE],
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
    plain(
        "cohere2",
        &[one("cohere2", "Cohere2ForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            LAYER_NORM,
            WINDOW,
            &[("head_dim", HeadDim), ("logit_scale", Key(&["logit_scale"]))],
        ],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    plain(
        "exaone4",
        &[one("exaone4", "Exaone4ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, WINDOW, LAYER_TYPES],
        &[DECODER, POST_NORMS, GATED_MLP],
    ),
    plain(
        "glm4",
        &[one("glm4", "Glm4ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, &[("attention_bias", Has("blk.0.attn_q.bias"))]],
        &[DECODER, GLM4_NORMS, FUSED_MLP],
    ),
    Architecture {
        numbers: XIELU,
        ..plain(
            "apertus",
            &[one("apertus", "ApertusForCausalLM")],
            &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, &[("attention_bias", Has("blk.0.attn_q.bias"))]],
            &[DECODER, APERTUS, UNGATED_MLP],
        )
    },
    plain(
        "chatglm",
        &[one("glm", "GlmForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, &[("attention_bias", Has("blk.0.attn_q.bias"))]],
        &[DECODER, PRE_NORMS, FUSED_MLP],
    ),
    Architecture {
        rope: Rope::Part,
        ..plain(
            "minicpm3",
            &[one("minicpm3", "MiniCPM3ForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                RMS,
                &[
                    ("q_lora_rank", OrNull(&["attention.q_lora_rank"])),
                    ("kv_lora_rank", Key(&["attention.kv_lora_rank"])),
                    ("qk_rope_head_dim", Key(&["rope.dimension_count"])),
                    ("qk_nope_head_dim", Difference(&["attention.key_length"], "rope.dimension_count")),
                    // As llama.cpp's graph has it for every file.
                    ("scale_emb", Fixed("12.0")),
                    ("scale_depth", Fixed("1.4")),
                    ("dim_model_base", Fixed("256")),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, LATENT],
        )
    },
    plain(
        "ernie4_5",
        &[one("ernie4_5", "Ernie4_5ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS, &[("use_bias", Has("blk.0.attn_q.bias"))]],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    plain(
        "hunyuan-dense",
        &[one("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS],
        &[DECODER, HUNYUAN_NORMS, PRE_NORMS, GATED_MLP],
    ),
    plain(
        "seed_oss",
        &[one("seed_oss", "SeedOssForCausalLM")],
        &[
            SIZES,
            INTERMEDIATE,
            KV_HEADS,
            HEADS,
            RMS,
            &[
                ("attention_bias", Has("blk.0.attn_q.bias")),
                ("attention_out_bias", Has("blk.0.attn_output.bias")),
                ("mlp_bias", Has("blk.0.ffn_down.bias")),
            ],
        ],
        &[DECODER, POST_ATTENTION_NORM, GATED_MLP],
    ),
    plain(
        "jais2",
        &[one("jais2", "Jais2ForCausalLM")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, LAYER_NORM, BIASES],
        &[DECODER, PRE_NORMS, UNGATED_MLP],
    ),
    Architecture {
        changes: ROTARY,
        ..plain(
            "mistral3",
            &[one("ministral3", "Ministral3ForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                &[
                    ("rope_parameters.mscale_all_dim", Maybe(&["rope.scaling.yarn_log_multiplier"])),
                    ("rope_parameters.mscale", Maybe(&["rope.scaling.yarn_log_multiplier"])),
                    ("rope_parameters.llama_4_scaling_beta", Maybe(&["attention.temperature_scale"])),
                ],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP],
        )
    },
];
