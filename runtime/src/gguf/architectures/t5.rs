//! T5 and its relatives, and its encoder alone.

use super::fields::{Fields, one, plain};
use super::names::Names;
use super::{Architecture, Model, Rope, Source, When};
use Source::{Fixed, Key, Lacks, Maybe, Rows};

const FIELDS: &Fields = &[
    ("vocab_size", Rows("token_embd.weight")),
    ("d_model", Key(&["embedding_length"])),
    ("d_kv", Key(&["attention.key_length"])),
    ("d_ff", Key(&["feed_forward_length"])),
    ("num_layers", Key(&["block_count"])),
    ("num_heads", Key(&["attention.head_count"])),
    ("relative_attention_num_buckets", Key(&["attention.relative_buckets_count"])),
    ("layer_norm_epsilon", Key(&["attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"])),
];
const DECODER_FIELDS: &Fields = &[
    ("num_decoder_layers", Maybe(&["decoder_block_count"])),
    ("decoder_start_token_id", Maybe(&["decoder_start_token_id"])),
    // A head of its own takes hidden states as they are.
    ("scale_decoder_outputs", Lacks("output.weight")),
];
const GATED: &Fields = &[("feed_forward_proj", Fixed("\"gated-gelu\""))];
const UNGATED: &Fields = &[("feed_forward_proj", Fixed("\"relu\""))];
const GATE: When = When::HasTensor("enc.blk.0.ffn_gate.weight");

const ENCODER: &Names = &[
    ("token_embd", "shared"),
    ("enc.output_norm", "encoder.final_layer_norm"),
    ("enc.blk.{}.attn_norm", "encoder.block.{}.layer.0.layer_norm"),
    ("enc.blk.{}.attn_q", "encoder.block.{}.layer.0.SelfAttention.q"),
    ("enc.blk.{}.attn_k", "encoder.block.{}.layer.0.SelfAttention.k"),
    ("enc.blk.{}.attn_v", "encoder.block.{}.layer.0.SelfAttention.v"),
    ("enc.blk.{}.attn_o", "encoder.block.{}.layer.0.SelfAttention.o"),
    ("enc.blk.{}.attn_rel_b", "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias"),
    ("enc.blk.{}.ffn_norm", "encoder.block.{}.layer.1.layer_norm"),
    ("enc.blk.{}.ffn_down", "encoder.block.{}.layer.1.DenseReluDense.wo"),
];
const DECODER: &Names = &[
    ("output", "lm_head"),
    ("dec.output_norm", "decoder.final_layer_norm"),
    ("dec.blk.{}.attn_norm", "decoder.block.{}.layer.0.layer_norm"),
    ("dec.blk.{}.attn_q", "decoder.block.{}.layer.0.SelfAttention.q"),
    ("dec.blk.{}.attn_k", "decoder.block.{}.layer.0.SelfAttention.k"),
    ("dec.blk.{}.attn_v", "decoder.block.{}.layer.0.SelfAttention.v"),
    ("dec.blk.{}.attn_o", "decoder.block.{}.layer.0.SelfAttention.o"),
    ("dec.blk.{}.attn_rel_b", "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias"),
    ("dec.blk.{}.cross_attn_norm", "decoder.block.{}.layer.1.layer_norm"),
    ("dec.blk.{}.cross_attn_q", "decoder.block.{}.layer.1.EncDecAttention.q"),
    ("dec.blk.{}.cross_attn_k", "decoder.block.{}.layer.1.EncDecAttention.k"),
    ("dec.blk.{}.cross_attn_v", "decoder.block.{}.layer.1.EncDecAttention.v"),
    ("dec.blk.{}.cross_attn_o", "decoder.block.{}.layer.1.EncDecAttention.o"),
    ("dec.blk.{}.cross_attn_rel_b", "decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias"),
    ("dec.blk.{}.ffn_norm", "decoder.block.{}.layer.2.layer_norm"),
    ("dec.blk.{}.ffn_down", "decoder.block.{}.layer.2.DenseReluDense.wo"),
];
const GATED_MLP: &Names = &[
    ("enc.blk.{}.ffn_gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0"),
    ("enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi_1"),
    ("dec.blk.{}.ffn_gate", "decoder.block.{}.layer.2.DenseReluDense.wi_0"),
    ("dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi_1"),
];
const MLP: &Names = &[
    ("enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi"),
    ("dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi"),
];

pub const ALL: &[Architecture] = &[
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "t5",
            &[
                // It has a bias in every layer.
                Model {
                    model_type: "umt5",
                    class: "UMT5ForConditionalGeneration",
                    when: When::HasTensor("enc.blk.1.attn_rel_b.weight"),
                },
                Model { model_type: "t5", class: "T5ForConditionalGeneration", when: GATE },
                Model { model_type: "mt5", class: "MT5ForConditionalGeneration", when: GATE },
            ],
            &[FIELDS, DECODER_FIELDS, GATED],
            &[ENCODER, DECODER, GATED_MLP],
        )
    },
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "t5",
            &[one("t5", "T5ForConditionalGeneration")],
            &[FIELDS, DECODER_FIELDS, UNGATED],
            &[ENCODER, DECODER, MLP],
        )
    },
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "t5encoder",
            &[Model { model_type: "t5", class: "T5EncoderModel", when: GATE }],
            &[FIELDS, GATED],
            &[ENCODER, GATED_MLP],
        )
    },
    Architecture {
        rope: Rope::Absent,
        ..plain("t5encoder", &[one("t5", "T5EncoderModel")], &[FIELDS, UNGATED], &[ENCODER, MLP])
    },
];
