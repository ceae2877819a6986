"""GPT-2 and others that are older than Llama, each in its own way."""

from __future__ import annotations

from weft_reference.models.decoders.family import CLASSIC, N_EMBD, PLAIN, SPECIAL, TIED, UNTIED, Decoder

DECODERS = (
    Decoder(
        "gpt2",
        "GPT2",
        {},
        {
            "untied": UNTIED,
            "inner": {"n_inner": 40},
            "unscaled": {"scale_attn_weights": False},
            "by-layer": {"scale_attn_by_inverse_layer_idx": True},
        },
        CLASSIC,
        base=N_EMBD,
    ),
    Decoder(
        "gpt_bigcode", "GPTBigCode", {}, {"own-key-heads": {"multi_query": False}, "inner": {"n_inner": 40}}, base=N_EMBD
    ),
    Decoder(
        "gpt_neo",
        "GPTNeo",
        {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 4},
        {
            "inner": {"intermediate_size": 40},
            # As files have it that list `attention_types` alone.
            "counted-layers": {
                "num_layers": 3,
                "attention_types": [[["local"], 2], [["global"], 1]],
                "written": {"attention_layers": None},
            },
        },
        base={"vocab_size": 61, "hidden_size": 32, "max_position_embeddings": 64} | SPECIAL,
    ),
    Decoder("gptj", "GPTJ", {"rotary_dim": 4}, {"inner": {"n_inner": 40}, "tied": TIED}, base=N_EMBD),
    Decoder("codegen", "CodeGen", {"rotary_dim": 4}, {"inner": {"n_inner": 40}}, base=N_EMBD),
    Decoder(
        "gpt_neox",
        "GPTNeoX",
        {},
        {
            "serial": {"use_parallel_residual": False},
            "no-bias": {"attention_bias": False},
            "whole-rotary": {"rotary_pct": 1.0},
        },
    ),
    Decoder(
        "gpt_neox_japanese",
        "GPTNeoXJapanese",
        {"intermediate_multiple_size": 2},
        base=PLAIN,
    ),
    Decoder(
        "opt",
        "OPT",
        {"ffn_dim": 48, "word_embed_proj_dim": 32},
        {
            "projected": {"word_embed_proj_dim": 20},
            "post-norm": {"do_layer_norm_before": False},
            "no-bias": {"enable_bias": False},
            "plain-norms": {"layer_norm_elementwise_affine": False},
            "no-final-norm": {"_remove_final_layer_norm": True},
        },
        base=PLAIN,
    ),
    Decoder(
        "bloom",
        "Bloom",
        {"n_head": 6, "hidden_size": 24},
        {"post-norm": {"apply_residual_connection_post_layernorm": True}},
        base={"vocab_size": 61, "n_layer": 2} | SPECIAL,
    ),
    Decoder(
        "falcon",
        "Falcon",
        {},
        {
            "own-key-heads": {"multi_query": False},
            "serial": {"parallel_attn": False, "bias": True},
            "new": {"new_decoder_architecture": True, "num_kv_heads": 2},
            "new-one-norm": {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
            "alibi": {"alibi": True, "bias": True},
            "alibi-rounded-left": {"alibi": True, "hidden_size": 48, "num_attention_heads": 6},
        },
        base=PLAIN,
    ),
    Decoder(
        "mpt",
        "Mpt",
        {},
        {"clipped": {"attn_config": {"clip_qkv": 0.5, "softmax_scale": 0.2}}},
        base={"vocab_size": 61, "d_model": 24, "n_heads": 6, "n_layers": 2, "expansion_ratio": 2} | SPECIAL,
    ),
    Decoder("biogpt", "BioGpt", {}, {"unscaled": {"scale_embedding": False}, "untied": UNTIED}),
    Decoder(
        "xglm",
        "XGLM",
        {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": 64},
        {"unscaled": {"scale_embedding": False}, "empty-position": {"pad_token_id": 4}},
        base={"vocab_size": 61} | SPECIAL,
    ),
    Decoder("openai_gpt", "OpenAIGPT", {}, {}, CLASSIC, base=N_EMBD),
    Decoder("ctrl", "CTRL", {"dff": 48}, {}, CLASSIC, base=N_EMBD),
)
