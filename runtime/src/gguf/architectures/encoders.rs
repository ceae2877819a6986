//! Encoders.

use super::fields::{
    Fields, HEADS, INTERMEDIATE, KV_HEADS, LAYER_NORM, LAYER_TYPES, RMS, SIZES, WINDOW, one, plain,
};
use super::names::{BEFORE_NORMS, BERT, DECODER, GATED_MLP, NOMIC, Names, POST_NORMS, PRE_NORMS};
use super::{Architecture, Change, Model, Rope, Source, When};
use Source::{Fixed, Has, HeadDim, Key, Maybe, Or, Positions, Rows};

const TYPES: &Fields = &[("type_vocab_size", Rows("token_types.weight"))];

/// Of DistilBERT.
const DISTILBERT: &Names = &[
    ("token_embd", "embeddings.word_embeddings"),
    ("position_embd", "embeddings.position_embeddings"),
    ("token_embd_norm", "embeddings.LayerNorm"),
    ("blk.{}.attn_q", "transformer.layer.{}.attention.q_lin"),
    ("blk.{}.attn_k", "transformer.layer.{}.attention.k_lin"),
    ("blk.{}.attn_v", "transformer.layer.{}.attention.v_lin"),
    ("blk.{}.attn_output", "transformer.layer.{}.attention.out_lin"),
    ("blk.{}.attn_output_norm", "transformer.layer.{}.sa_layer_norm"),
    ("blk.{}.ffn_up", "transformer.layer.{}.ffn.lin1"),
    ("blk.{}.ffn_down", "transformer.layer.{}.ffn.lin2"),
    ("blk.{}.layer_output_norm", "transformer.layer.{}.output_layer_norm"),
];

/// Of ModernBERT.
const MODERNBERT: &Names = &[
    ("token_embd", "embeddings.tok_embeddings"),
    ("token_embd_norm", "embeddings.norm"),
    ("output_norm", "final_norm"),
    ("blk.{}.attn_norm", "layers.{}.attn_norm"),
    ("blk.{}.attn_qkv", "layers.{}.attn.Wqkv"),
    ("blk.{}.attn_output", "layers.{}.attn.Wo"),
    ("blk.{}.ffn_norm", "layers.{}.mlp_norm"),
    ("blk.{}.ffn_up", "layers.{}.mlp.Wi"),
    ("blk.{}.ffn_down", "layers.{}.mlp.Wo"),
];

/// Of Jina Embeddings v3, whose queries, keys and values are one tensor as published.
const JINA: &Names = &[
    ("token_embd", "embeddings.word_embeddings"),
    ("token_types", "embeddings.token_type_embeddings"),
    ("token_embd_norm", "embeddings.LayerNorm"),
    ("blk.{}.attn_qkv", "layers.{}.mixer.Wqkv"),
    ("blk.{}.attn_output", "layers.{}.self_attn.o_proj"),
    ("blk.{}.attn_output_norm", "layers.{}.post_attention_layernorm"),
    ("blk.{}.ffn_up", "layers.{}.mlp.fc1"),
    ("blk.{}.ffn_down", "layers.{}.mlp.fc2"),
    ("blk.{}.layer_output_norm", "layers.{}.post_mlp_layernorm"),
];

pub const ALL: &[Architecture] = &[
    plain(
        "eurobert",
        &[one("eurobert", "EuroBertModel")],
        &[SIZES, INTERMEDIATE, KV_HEADS, HEADS, RMS],
        &[DECODER, PRE_NORMS, GATED_MLP],
    ),
    // EmbeddingGemma, whose window is of the positions on both sides.
    Architecture {
        rope: Rope::ByLayers(10_000.0),
        changes: &[("norm.weight", Change::PlusOne)],
        ..plain(
            "gemma-embedding",
            &[one("gemma3_text", "Gemma3TextModel")],
            &[
                SIZES,
                INTERMEDIATE,
                KV_HEADS,
                HEADS,
                RMS,
                WINDOW,
                LAYER_TYPES,
                &[("query_pre_attn_scalar", HeadDim), ("use_bidirectional_attention", Fixed("true"))],
            ],
            &[DECODER, BEFORE_NORMS, POST_NORMS, GATED_MLP],
        )
    },
    // It alone has no types of tokens.
    Architecture {
        rope: Rope::Absent,
        ..plain(
            "bert",
            &[Model {
                model_type: "distilbert",
                class: "DistilBertModel",
                when: When::LacksTensor("token_types.weight"),
            }],
            &[&[
                ("vocab_size", Rows("token_embd.weight")),
                ("dim", Key(&["embedding_length"])),
                ("hidden_dim", Key(&["feed_forward_length"])),
                ("n_layers", Key(&["block_count"])),
                ("n_heads", Key(&["attention.head_count"])),
                ("max_position_embeddings", Rows("position_embd.weight")),
            ]],
            &[DISTILBERT],
        )
    },
    // Their positions begin behind that of padding, and their texts are not split as BERT's are.
    Architecture {
        rope: Rope::Absent,
        changes: &[("position_embd.weight", Change::BehindPadding)],
        ..plain(
            "bert",
            &[
                Model { model_type: "roberta", class: "RobertaModel", when: When::Tokenizer("gpt2") },
                Model { model_type: "xlm-roberta", class: "XLMRobertaModel", when: When::Tokenizer("t5") },
            ],
            &[SIZES, INTERMEDIATE, LAYER_NORM, TYPES, &[("max_position_embeddings", Positions)]],
            &[BERT],
        )
    },
    Architecture {
        rope: Rope::Absent,
        ..plain("bert", &[one("bert", "BertModel")], &[SIZES, INTERMEDIATE, LAYER_NORM, TYPES], &[BERT])
    },
    Architecture {
        rope: Rope::ByLayers(10_000.0),
        ..plain(
            "modern-bert",
            &[one("modernbert", "ModernBertModel")],
            &[
                SIZES,
                INTERMEDIATE,
                &[
                    ("norm_eps", Key(&["attention.layer_norm_epsilon"])),
                    ("norm_bias", Has("output_norm.bias")),
                    ("local_attention", Key(&["attention.sliding_window"])),
                    ("global_attn_every_n_layers", Or("attention.sliding_window_pattern", "3")),
                    ("hidden_activation", Maybe(&["hidden_act"])),
                    ("attention_bias", Has("blk.0.attn_qkv.bias")),
                    ("mlp_bias", Has("blk.0.ffn_up.bias")),
                ],
            ],
            &[MODERNBERT],
        )
    },
    plain(
        "jina-bert-v3",
        &[one("jina_embeddings_v3", "JinaEmbeddingsV3Model")],
        &[SIZES, INTERMEDIATE, LAYER_NORM, TYPES, &[("max_position_embeddings", Positions)]],
        &[JINA],
    ),
    plain(
        "nomic-bert",
        &[one("nomic_bert", "NomicBertModel")],
        &[SIZES, INTERMEDIATE, LAYER_NORM, TYPES],
        &[NOMIC],
    ),
];
