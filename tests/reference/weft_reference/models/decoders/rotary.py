"""Llama and those that differ from it by a few words."""

from __future__ import annotations

from weft_reference.models.decoders.family import (
    BIAS,
    HEADS,
    LAYERS,
    PATTERN,
    TIED,
    TINY,
    UNTIED,
    WIDE_HEADS,
    WINDOW,
    Decoder,
)
from weft_reference.models.decoders.ropes import LONG, ROPES, SHORT, rope

DECODERS = (
    Decoder(
        "llama",
        "Llama",
        {},
        {"tied": TIED, "bias": BIAS | {"mlp_bias": True}, "wide-heads": WIDE_HEADS, "gelu": {"hidden_act": "gelu"}}
        | ROPES
        | {"bidirectional": {"is_causal": False}, "one-key-head": {"num_key_value_heads": 1}, "own-key-heads": {"num_key_value_heads": 4}},
    ),
    Decoder(
        "qwen2",
        "Qwen2",
        {},
        {
            "tied": TIED,
            "windows": {"use_sliding_window": True, "max_window_layers": 1} | WINDOW,
            "bidirectional-windows": {"use_sliding_window": True, "max_window_layers": 1, "is_causal": False} | WINDOW,
        },
    ),
    Decoder("ministral", "Ministral", {"head_dim": 8} | WINDOW, {"layer-types": LAYERS}),
    Decoder(
        "ministral3",
        "Ministral3",
        {"head_dim": 8},
        {
            "scaled": rope(
                "yarn", factor=4.0, original_max_position_embeddings=4, llama_4_scaling_beta=0.1, beta_fast=8.0
            ),
            "windows": WINDOW,
        },
    ),
    Decoder("internlm3", "Llama", {"head_dim": 8}, {"bias": BIAS | {"mlp_bias": True}}, config="InternLM3"),
    Decoder("iquestcoder", "Llama", {"head_dim": 8}, {"bias": BIAS}, config="IQuestCoder"),
    Decoder("arcee", "Arcee", {}, {"bias": BIAS | {"mlp_bias": True}, "tied": TIED}),
    Decoder("jais2", "Jais2", {}, {"no-bias": {"attention_bias": False, "mlp_bias": False}}),
    Decoder("gemma", "Gemma", {"head_dim": 12}, {"bias": BIAS, "untied": UNTIED}),
    Decoder(
        "gemma2",
        "Gemma2",
        {"head_dim": 12, "query_pre_attn_scalar": 10} | WINDOW,
        {"untied": UNTIED, "no-caps": {"attn_logit_softcapping": None, "final_logit_softcapping": None}},
    ),
    Decoder("vaultgemma", "VaultGemma", {"head_dim": 12, "query_pre_attn_scalar": 10} | WINDOW, {"untied": UNTIED}),
    Decoder(
        "gemma3_text",
        "Gemma3",
        {"head_dim": 12, "query_pre_attn_scalar": 10, "layer_types": ["sliding_attention", "full_attention"]} | WINDOW,
        {
            "caps": {"attn_logit_softcapping": 20.0, "final_logit_softcapping": 10.0},
            "bidirectional": {"use_bidirectional_attention": True, "sliding_window": 6},
            "pattern": PATTERN,
        },
        HEADS | {"base": "TextModel", "sequence-classification": "TextForSequenceClassification"},
        config="Gemma3Text",
    ),
    Decoder(
        "gemma3n_text",
        "Gemma3n",
        {"num_hidden_layers": 4, "head_dim": 12, "layer_types": ["sliding_attention", "full_attention"] * 2}
        | {"num_kv_shared_layers": 2, "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 61, "laurel_rank": 5}
        | {"activation_sparsity_pattern": [0.9, 0.5, 0.0, 0.0]}
        | WINDOW,
        {
            "unshared": {"num_kv_shared_layers": 0},
            "widths": {"intermediate_size": [48, 24, 40, 36]},
            "fewer-words": {"vocab_size_per_layer_input": 40},
            "streams": {"altup_num_inputs": 3, "altup_active_idx": 1},
            "unscaled": {"altup_correct_scale": False},
            "bias": BIAS,
            # Without lists, one layer of five has full attention, and the first ten of many have sparse gates.
            "defaults": {"num_hidden_layers": 11, "layer_types": None, "activation_sparsity_pattern": None, "intermediate_size": 256},
            "untied": UNTIED,
        },
        HEADS | {"base": "TextModel"},
        config="Gemma3nText",
    ),
    Decoder("phi", "Phi", {}, {"norms": {"qk_layernorm": True}}),
    Decoder(
        "phi3",
        "Phi3",
        {"original_max_position_embeddings": 16},
        {
            "windows": WINDOW,
            "partial": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
            "longrope": {
                "rope_parameters": {
                    "rope_type": "longrope", "rope_theta": 1e4, "short_factor": SHORT, "long_factor": LONG
                }
            },
            "longrope-long": {
                "original_max_position_embeddings": 8,
                "rope_parameters": {
                    "rope_type": "longrope", "rope_theta": 1e4, "short_factor": SHORT, "long_factor": LONG
                },
            },
        },
    ),
    Decoder(
        "qwen3",
        "Qwen3",
        {"head_dim": 12},
        {"bias": BIAS, "windows": {"use_sliding_window": True, "max_window_layers": 1} | WINDOW},
    ),
    Decoder("olmo", "Olmo", {}, {"clipped": {"clip_qkv": 0.5}, "bias": BIAS}),
    Decoder("olmo2", "Olmo2", {}, {"bias": BIAS}),
    Decoder(
        "olmo3",
        "Olmo3",
        {"num_hidden_layers": 4} | WINDOW,
        {
            "yarn": {
                "rope_scaling": {
                    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 1e4
                }
            }
        },
    ),
    Decoder("cohere", "Cohere", {}, {"norms": {"use_qk_norm": True}, "bias": BIAS, "untied": UNTIED}),
    Decoder(
        "modernbert-decoder",
        "ModernBertDecoder",
        {"num_hidden_layers": 4, "local_attention": 8},
        {
            "biases-window": BIAS | {"mlp_bias": True, "norm_bias": True, "decoder_bias": False} | UNTIED,
            "layer-types": LAYERS
            | {
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": 500.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
                },
                "num_hidden_layers": 2,
            },
        },
        base={name: value for name, value in TINY.items() if name != "num_key_value_heads"},
    ),
    Decoder("cohere2", "Cohere2", {"num_hidden_layers": 4} | WINDOW, {"bias": BIAS, "pattern": PATTERN}),
    Decoder("glm", "Glm", {"head_dim": 12}, {"no-bias": {"attention_bias": False}}),
    Decoder("glm4", "Glm4", {"head_dim": 12}, {"no-bias": {"attention_bias": False}}),
    Decoder(
        "granite",
        "Granite",
        {
            "embedding_multiplier": 3.0,
            "logits_scaling": 2.0,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.25,
        },
        {"bias": BIAS | {"mlp_bias": True}, "tied": TIED},
    ),
    Decoder(
        "hyperclovax",
        "HyperCLOVAX",
        {"embedding_multiplier": 3.0, "logits_scaling": 0.5, "residual_multiplier": 0.5},
        {"no-post-norm": {"use_post_norm": False}, "scaled": {"attention_multiplier": 0.25}},
    ),
    Decoder("starcoder2", "Starcoder2", WINDOW, {"no-bias": {"use_bias": False}, "full": {"sliding_window": None}}),
    Decoder(
        "stablelm",
        "StableLm",
        {},
        {"norms": {"qk_layernorm": True}, "bias": {"use_qkv_bias": True}, "parallel": {"use_parallel_residual": True}},
    ),
    Decoder(
        "smollm3",
        "SmolLM3",
        {"num_hidden_layers": 4},
        {"windows": {"use_sliding_window": True} | WINDOW, "bias": BIAS | {"mlp_bias": True}, "untied": UNTIED},
    ),
    Decoder("helium", "Helium", {"head_dim": 8}, {"bias": BIAS | {"mlp_bias": True}}),
    Decoder("nemotron", "Nemotron", {"head_dim": 12}, {"bias": BIAS | {"mlp_bias": True}}),
    Decoder("persimmon", "Persimmon", {}, {"no-norms": {"qk_layernorm": False}}),
    Decoder(
        "exaone4",
        "Exaone4",
        {"num_hidden_layers": 4} | WINDOW,
        {"full": {"sliding_window": None, "layer_types": ["full_attention"] * 4}},
    ),
    Decoder("seed_oss", "SeedOss", {"head_dim": 12}, {"bias": {"attention_out_bias": True, "mlp_bias": True}}),
    Decoder("apertus", "Apertus", {}, {"silu": {"hidden_act": "silu"}, "bias": BIAS}),
    Decoder("ernie4_5", "Ernie4_5", {"head_dim": 12}, {"bias": {"use_bias": True}, "untied": UNTIED}),
    Decoder(
        "hunyuan_v1_dense",
        "HunYuanDenseV1",
        {"head_dim": 12},
        {"bias": BIAS, "alpha": rope("dynamic", alpha=50.0, factor=1.0), "tied": TIED},
    ),
    Decoder("diffllama", "DiffLlama", {"num_hidden_layers": 3}, {"bias": BIAS}),
    Decoder(
        "minicpm3",
        "MiniCPM3",
        {
            "num_key_value_heads": 4,
            "kv_lora_rank": 10,
            "q_lora_rank": 14,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 4,
            "v_head_dim": 6,
            "dim_model_base": 16,
        },
        {"whole-queries": {"q_lora_rank": None}, "bias": BIAS},
    ),
    Decoder(
        "youtu",
        "Youtu",
        {
            "num_key_value_heads": 4,
            "kv_lora_rank": 10,
            "q_lora_rank": 14,
            "qk_nope_head_dim": 8,
            "qk_rope_head_dim": 4,
            "v_head_dim": 6,
        },
        {"whole-queries": {"q_lora_rank": None}, "halves": {"rope_interleave": False}},
    ),
    Decoder("cwm", "Cwm", {"head_dim": 8, "num_hidden_layers": 4} | WINDOW, {"bias": {"mlp_bias": True}}),
    Decoder("nanochat", "NanoChat", {}, {"bias": BIAS}),
    Decoder("bitnet", "BitNet", {}, {"bias": BIAS}),
    Decoder(
        "granite_swa",
        "GraniteSWA",
        {
            "num_hidden_layers": 4,
            "embedding_multiplier": 3.0,
            "logits_scaling": 2.0,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.25,
        }
        | WINDOW,
    ),
)
