//! Decoders and encoders.

use super::names::{
    BEFORE_NORMS, BERT, BLOOM, DECODER, FALCON, FALCON_NORM, FALCON_NORMS, FUSED_MLP, GATED_MLP, GLM4_NORMS,
    GPT_NEOX, GPT2, HUNYUAN_NORMS, MIXTRAL, MPT, NOMIC, PHI, POST_ATTENTION_NORM, POST_NORMS, PRE_NORMS,
    STARCODER2, UNGATED_MLP,
};
use super::{Architecture, Change, Model, Names, Rope, Source, When};
use Source::{Fixed, Has, HeadDim, Key, Lacks, Maybe, QueryScalar, Rows};

pub(super) type Fields = [(&'static str, Source)];
pub(super) type Changes = [(&'static str, Change)];

/// What every decoder's configuration has.
pub(super) const SIZES: &Fields = &[
    ("vocab_size", Rows("token_embd.weight")),
    ("hidden_size", Key(&["embedding_length"])),
    ("num_hidden_layers", Key(&["block_count"])),
    ("num_attention_heads", Key(&["attention.head_count"])),
    ("max_position_embeddings", Key(&["context_length"])),
    ("tie_word_embeddings", Lacks("output.weight")),
];

pub(super) const INTERMEDIATE: &Fields = &[("intermediate_size", Key(&["feed_forward_length"]))];
pub(super) const KV_HEADS: &Fields =
    &[("num_key_value_heads", Key(&["attention.head_count_kv", "attention.head_count"]))];
pub(super) const HEADS: &Fields = &[("head_dim", HeadDim)];
pub(super) const RMS: &Fields = &[("rms_norm_eps", Key(&["attention.layer_norm_rms_epsilon"]))];
pub(super) const GRANITE: &Fields = &[
    ("embedding_multiplier", Key(&["embedding_scale"])),
    ("residual_multiplier", Key(&["residual_scale"])),
    ("attention_multiplier", Key(&["attention.scale"])),
    ("logits_scaling", Key(&["logit_scale"])),
];
const LAYER_NORM: &Fields = &[("layer_norm_eps", Key(&["attention.layer_norm_epsilon"]))];
const BIASES: &Fields =
    &[("attention_bias", Has("blk.0.attn_q.bias")), ("mlp_bias", Has("blk.0.ffn_down.bias"))];
const WINDOW: &Fields = &[("sliding_window", Source::Window)];
const LAYER_TYPES: &Fields = &[("layer_types", Source::LayerTypes)];
pub(super) const ROTARY: &Changes = &[
    ("attn_q.weight", Change::RotaryQueries),
    ("attn_q.bias", Change::RotaryQueries),
    ("attn_k.weight", Change::RotaryKeys),
    ("attn_k.bias", Change::RotaryKeys),
];
/// Those of Falcon, of which attention and MLP are beside each other: as llama.cpp has it for every file.
const FALCON_FIELDS: &Fields = &[
    ("num_kv_heads", Key(&["attention.head_count_kv", "attention.head_count"])),
    ("layer_norm_epsilon", Key(&["attention.layer_norm_epsilon"])),
    ("new_decoder_architecture", Fixed("true")),
    ("parallel_attn", Fixed("true")),
    ("bias", Has("blk.0.attn_qkv.bias")),
    ("alibi", Fixed("false")),
];
const NORMS_PLUS_ONE: &Changes = &[("norm.weight", Change::PlusOne)];
const SPLIT_QKV: &Changes = &[("attn_qkv.weight", Change::SplitHeads), ("attn_qkv.bias", Change::SplitHeads)];

pub(super) const fn one(model_type: &'static str, class: &'static str) -> Model {
    Model { model_type, class, when: When::Always }
}

/// A decoder without changes, of one model.
pub(super) const fn plain(
    name: &'static str,
    models: &'static [Model],
    fields: &'static [&'static Fields],
    tensors: &'static [&'static Names],
) -> Architecture {
    Architecture { name, models, fields, rope: Rope::Heads, tensors, changes: &[], splits: &[] }
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
    Architecture {
        changes: SPLIT_QKV,
        ..plain(
            "falcon",
            &[Model {
                model_type: "falcon",
                class: "FalconForCausalLM",
                when: When::HasTensor("blk.0.attn_norm_2.weight"),
            }],
            &[SIZES, INTERMEDIATE, FALCON_FIELDS, &[("num_ln_in_parallel_attn", Fixed("2"))]],
            &[FALCON, FALCON_NORMS],
        )
    },
    Architecture {
        changes: SPLIT_QKV,
        ..plain(
            "falcon",
            &[one("falcon", "FalconForCausalLM")],
            &[SIZES, INTERMEDIATE, FALCON_FIELDS, &[("num_ln_in_parallel_attn", Fixed("1"))]],
            &[FALCON, FALCON_NORM],
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
        rope: Rope::Absent,
        ..plain(
            "starcoder",
            &[one("gpt_bigcode", "GPTBigCodeForCausalLM")],
            &[
                SIZES,
                &[
                    ("layer_norm_epsilon", Key(&["attention.layer_norm_epsilon"])),
                    ("n_inner", Key(&["feed_forward_length"])),
                    ("multi_query", Fixed("true")),
                ],
            ],
            &[GPT2],
        )
    },
    plain(
        "eurobert",
        &[one("eurobert", "EuroBertModel")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "bert",
            &[one("bert", "BertModel")],
            &[SIZES, INTERMEDIATE, LAYER_NORM, &[("type_vocab_size", Rows("token_types.weight"))]],
            &[BERT],
        )
    },
    plain(
        "nomic-bert",
        &[one("nomic_bert", "NomicBertModel")],
        &[SIZES, INTERMEDIATE, LAYER_NORM, &[("type_vocab_size", Rows("token_types.weight"))]],
        &[NOMIC],
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
