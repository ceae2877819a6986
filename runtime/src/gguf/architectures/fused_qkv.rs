//! Decoders whose queries, keys and values are one tensor.

use super::fields::{Changes, Fields, INTERMEDIATE, LAYER_NORM, SIZES, one, plain};
use super::names::{BLOOM, FALCON, FALCON_NORM, FALCON_NORMS, GPT_NEOX, GPT2, MPT};
use super::{Architecture, Change, Model, Rope, Source, When};
use Source::{Fixed, Has, Key};

/// Those of Falcon, of which attention and MLP are beside each other: as llama.cpp has it for every file.
const FALCON_FIELDS: &Fields = &[
    ("num_kv_heads", Key(&["attention.head_count_kv", "attention.head_count"])),
    ("layer_norm_epsilon", Key(&["attention.layer_norm_epsilon"])),
    ("new_decoder_architecture", Fixed("true")),
    ("parallel_attn", Fixed("true")),
    ("bias", Has("blk.0.attn_qkv.bias")),
    ("alibi", Fixed("false")),
];
const SPLIT_QKV: &Changes = &[("attn_qkv.weight", Change::SplitHeads), ("attn_qkv.bias", Change::SplitHeads)];

pub const ALL: &[Architecture] = &[
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
];
