//! Models with states of a fixed size: state spaces and short convolutions.

use super::decoders::{Fields, SIZES, one, plain};
use super::names::{DECODER, LFM2, MAMBA, MAMBA2, MAMBAS};
use super::{Architecture, Change, Model, Rope, Source, When};
use Source::{Fixed, Has, Key, Lacks, Quotient, Rows};

/// What the configurations of both Mambas have.
const STATES: &Fields = &[
    ("vocab_size", Rows("token_embd.weight")),
    ("hidden_size", Key(&["embedding_length"])),
    ("num_hidden_layers", Key(&["block_count"])),
    ("state_size", Key(&["ssm.state_size"])),
    ("conv_kernel", Key(&["ssm.conv_kernel"])),
    ("layer_norm_epsilon", Key(&["attention.layer_norm_rms_epsilon"])),
    ("expand", Quotient("ssm.inner_size", "embedding_length")),
    ("use_bias", Has("blk.0.ssm_in.bias")),
    ("use_conv_bias", Has("blk.0.ssm_conv1d.bias")),
    ("tie_word_embeddings", Lacks("output.weight")),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        rope: Rope::Absent,
        changes: &[("ssm_conv1d.weight", Change::Squeezed), ("ssm_a", Change::NegativeExp)],
        ..plain(
            "mamba",
            &[
                Model {
                    model_type: "falcon_mamba",
                    class: "FalconMambaForCausalLM",
                    when: When::Holds("ssm.dt_b_c_rms"),
                },
                one("mamba", "MambaForCausalLM"),
            ],
            &[
                STATES,
                &[
                    ("intermediate_size", Key(&["ssm.inner_size"])),
                    ("time_step_rank", Key(&["ssm.time_step_rank"])),
                    // As llama.cpp's graph has it.
                    ("mixer_rms_eps", Key(&["attention.layer_norm_rms_epsilon"])),
                ],
            ],
            &[MAMBAS, MAMBA],
        )
    },
    Architecture {
        rope: Rope::Absent,
        changes: &[
            ("ssm_conv1d.weight", Change::Squeezed),
            ("ssm_a", Change::NegativeExpColumn),
            ("ssm_d", Change::Shaped),
            ("ssm_norm.weight", Change::Shaped),
        ],
        ..plain(
            "mamba2",
            &[one("mamba2", "Mamba2ForCausalLM")],
            &[
                STATES,
                &[
                    ("num_heads", Key(&["ssm.time_step_rank"])),
                    ("head_dim", Quotient("ssm.inner_size", "ssm.time_step_rank")),
                    ("n_groups", Key(&["ssm.group_count"])),
                ],
            ],
            &[MAMBAS, MAMBA2],
        )
    },
    Architecture {
        changes: &[("shortconv.conv.weight", Change::Squeezed)],
        ..plain(
            "lfm2",
            &[one("lfm2", "Lfm2ForCausalLM")],
            &[
                SIZES,
                &[
                    ("norm_eps", Key(&["attention.layer_norm_rms_epsilon"])),
                    ("num_key_value_heads", Source::MostKeyHeads),
                    ("intermediate_size", Key(&["feed_forward_length"])),
                    ("block_auto_adjust_ff_dim", Fixed("false")),
                    ("conv_L_cache", Key(&["shortconv.l_cache"])),
                    ("conv_bias", Has("blk.0.shortconv.conv.bias")),
                    ("layer_types", Source::ConvolutionLayers),
                ],
            ],
            &[DECODER, LFM2],
        )
    },
];
