//! Multi-head latent attention with scaled queries (Mistral 4), to the keys that an indexer selects (DeepSeek-V3.2, GLM-5,
//! Hunyuan 4 with several residual streams), or without experts (Youtu-LLM).

use super::fields::{Fields, INTERMEDIATE, RMS, SIZES, one, plain};
use super::mixtures::{DEEPSEEK, LATENT_SIZES};
use super::names::{DECODER, EXPERTS, GATED_MLP, LATENT, Names, PRE_NORMS, ROUTER_BIAS, SHARED_EXPERTS};
use super::splits::{LATENT_EXPERTS, LATENT_KEYS};
use super::{Architecture, Model, Rope, Source, When};
use Source::{Key, LayerKinds, Maybe, Or};

const SELECTION: &Fields = &[
    ("index_n_heads", Key(&["attention.indexer.head_count"])),
    ("index_head_dim", Key(&["attention.indexer.key_length"])),
    ("index_topk", Key(&["attention.indexer.top_k"])),
];

/// Layers without an indexer read the keys that were selected last.
const SHARING: &Fields =
    &[("indexer_types", LayerKinds(&[("indexer.attn_k.weight", "full"), ("attn_norm.weight", "shared")]))];

const INDEXER: &Names = &[
    ("blk.{}.indexer.attn_q_b", "model.layers.{}.self_attn.indexer.wq_b"),
    ("blk.{}.indexer.attn_k", "model.layers.{}.self_attn.indexer.wk"),
    ("blk.{}.indexer.k_norm", "model.layers.{}.self_attn.indexer.k_norm"),
    ("blk.{}.indexer.proj", "model.layers.{}.self_attn.indexer.weights_proj"),
];

const STREAMS: &Fields = &[
    ("hc_mult", Key(&["hyper_connection.count"])),
    ("hc_eps", Key(&["hyper_connection.epsilon"])),
    ("hc_magnitude", Key(&["hyper_connection.magnitude"])),
    ("swiglu_limit", Or("swiglu_clamp_exp", "0.0")),
];

const STREAM_NAMES: &Names = &[
    ("blk.{}.attn_gate", "model.layers.{}.self_attn.gate_proj"),
    ("blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks"),
    ("blk.{}.hc_attn_fn.weight", "model.layers.{}.attn_hc.fn"),
    ("blk.{}.hc_attn_base.weight", "model.layers.{}.attn_hc.base"),
    ("blk.{}.hc_attn_scale.weight", "model.layers.{}.attn_hc.scale"),
    ("blk.{}.hc_ffn_fn.weight", "model.layers.{}.ffn_hc.fn"),
    ("blk.{}.hc_ffn_base.weight", "model.layers.{}.ffn_hc.base"),
    ("blk.{}.hc_ffn_scale.weight", "model.layers.{}.ffn_hc.scale"),
    ("output_hc_fn.weight", "model.hc_head.hc_fn"),
    ("output_hc_base.weight", "model.hc_head.hc_base"),
    ("output_hc_scale.weight", "model.hc_head.hc_scale"),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        rope: Rope::Part,
        splits: LATENT_EXPERTS,
        ..plain(
            "hy_v4",
            &[one("hy_v4", "HYV4ForCausalLM")],
            &[SIZES, INTERMEDIATE, RMS, LATENT_SIZES, DEEPSEEK, SELECTION, SHARING, STREAMS],
            &[
                DECODER,
                PRE_NORMS,
                GATED_MLP,
                EXPERTS,
                SHARED_EXPERTS,
                ROUTER_BIAS,
                LATENT,
                INDEXER,
                STREAM_NAMES,
            ],
        )
    },
    Architecture {
        rope: Rope::Part,
        splits: LATENT_EXPERTS,
        ..plain(
            "mistral4",
            &[one("mistral4", "Mistral4ForCausalLM")],
            &[
                SIZES,
                INTERMEDIATE,
                RMS,
                LATENT_SIZES,
                DEEPSEEK,
                &[("rope_parameters.llama_4_scaling_beta", Maybe(&["attention.temperature_scale"]))],
            ],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, LATENT],
        )
    },
    // It alone has no experts.
    Architecture {
        rope: Rope::Part,
        splits: LATENT_KEYS,
        ..plain(
            "deepseek2",
            &[Model { model_type: "youtu", class: "YoutuForCausalLM", when: When::Lacks("expert_count") }],
            &[SIZES, INTERMEDIATE, RMS, LATENT_SIZES],
            &[DECODER, PRE_NORMS, GATED_MLP, LATENT],
        )
    },
    Architecture {
        rope: Rope::Part,
        splits: LATENT_KEYS,
        ..plain(
            "deepseek32",
            &[one("deepseek_v32", "DeepseekV32ForCausalLM")],
            &[SIZES, INTERMEDIATE, RMS, LATENT_SIZES, DEEPSEEK, SELECTION],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, ROUTER_BIAS, LATENT, INDEXER],
        )
    },
    Architecture {
        rope: Rope::Part,
        splits: LATENT_KEYS,
        ..plain(
            "glm-dsa",
            &[one("glm_moe_dsa", "GlmMoeDsaForCausalLM")],
            &[SIZES, INTERMEDIATE, RMS, LATENT_SIZES, DEEPSEEK, SELECTION, SHARING],
            &[DECODER, PRE_NORMS, GATED_MLP, EXPERTS, SHARED_EXPERTS, ROUTER_BIAS, LATENT, INDEXER],
        )
    },
];
