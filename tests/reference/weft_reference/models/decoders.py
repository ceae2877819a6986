"""Decoders: a table of architectures; every head of each, and what its configuration varies in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import transformers

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import text_batch
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_generation_goldens

Changes = dict[str, Any]

HEADS = {
    "base": "Model",
    "causal-lm": "ForCausalLM",
    "sequence-classification": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "question-answering": "ForQuestionAnswering",
}
CLASSIC = HEADS | {"causal-lm": "LMHeadModel"}
LABELLED = ("sequence-classification", "token-classification")

TINY: Changes = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
PLAIN: Changes = {
    name: value for name, value in TINY.items() if name not in ("intermediate_size", "num_key_value_heads")
}
SPECIAL: Changes = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WIDE_HEADS: Changes = {"head_dim": 12}
TIED: Changes = {"tie_word_embeddings": True}
UNTIED: Changes = {"tie_word_embeddings": False}
BIAS: Changes = {"attention_bias": True}
WINDOW: Changes = {"sliding_window": 4}
LAYERS: Changes = {"layer_types": ["sliding_attention", "full_attention"]}
# Those whose pipeline answers too: grouped heads, windows, biases, learned positions, positions from 2.
DEEPER: Changes = {"num_hidden_layers": 4, "max_position_embeddings": 128}
WRITERS: dict[str, Changes] = {
    "llama": DEEPER,
    "mistral": DEEPER,
    "qwen2": DEEPER,
    "gpt2": {"n_layer": 4, "n_positions": 128},
    "opt": DEEPER,
}
N_EMBD: Changes = {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64} | SPECIAL


def rope(rope_type: str, **changes: Any) -> Changes:
    """Rotary positions of a kind, for 16 positions stretched to 64 where the kind stretches."""
    return {"rope_parameters": {"rope_type": rope_type, "rope_theta": 10000.0} | changes}


LONG = [1.0 + 0.5 * step for step in range(4)]
SHORT = [1.0, 1.0, 1.25, 1.5]
ROPES: dict[str, Changes] = {
    "rope-theta": rope("default", rope_theta=500.0),
    "rope-linear": rope("linear", factor=4.0),
    "rope-dynamic": rope("dynamic", factor=2.0) | {"max_position_embeddings": 16},
    "rope-yarn": rope("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=8.0, beta_slow=1.0),
    "rope-yarn-factor": rope("yarn", factor=4.0, original_max_position_embeddings=16, attention_factor=0.8),
    "rope-yarn-mscale": rope("yarn", factor=4.0, original_max_position_embeddings=16, mscale=0.7, mscale_all_dim=1.0),
    "rope-yarn-whole": rope("yarn", factor=4.0, original_max_position_embeddings=16, truncate=False),
    "rope-llama3": rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16
    ),
    "rope-longrope": rope(
        "longrope", factor=4.0, original_max_position_embeddings=16, short_factor=SHORT, long_factor=LONG
    ),
}


class Decoder(NamedTuple):
    """`model` is the folder's name, `prefix` what classes begin with; `cases` are changes of the language model."""

    model: str
    prefix: str
    changes: Changes
    cases: dict[str, Changes] = {}
    heads: dict[str, str] = HEADS
    config: str = ""
    base: Changes = TINY


DECODERS = (
    Decoder(
        "llama",
        "Llama",
        {},
        {"tied": TIED, "bias": BIAS | {"mlp_bias": True}, "wide-heads": WIDE_HEADS, "gelu": {"hidden_act": "gelu"}}
        | ROPES
        | {"one-key-head": {"num_key_value_heads": 1}, "own-key-heads": {"num_key_value_heads": 4}},
    ),
    Decoder("mistral", "Mistral", WINDOW, {"full": {"sliding_window": None}, "wide-heads": WIDE_HEADS, "tied": TIED}),
    Decoder(
        "qwen2",
        "Qwen2",
        {},
        {"tied": TIED, "windows": {"use_sliding_window": True, "max_window_layers": 1} | WINDOW},
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
        {"caps": {"attn_logit_softcapping": 20.0, "final_logit_softcapping": 10.0}},
        HEADS | {"base": "TextModel", "sequence-classification": "TextForSequenceClassification"},
        config="Gemma3Text",
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
    Decoder("cohere2", "Cohere2", {"num_hidden_layers": 4} | WINDOW, {"bias": BIAS}),
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
    Decoder("cwm", "Cwm", {"head_dim": 8, "num_hidden_layers": 4} | WINDOW),
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
        {"inner": {"intermediate_size": 40}},
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
        {"unscaled": {"scale_embedding": False}},
        base={"vocab_size": 61} | SPECIAL,
    ),
    Decoder("openai_gpt", "OpenAIGPT", {}, {}, CLASSIC, base=N_EMBD),
    Decoder("ctrl", "CTRL", {"dff": 48}, {}, CLASSIC, base=N_EMBD),
)


def batch(padding: str, key: str = "text", lengths: tuple[int, ...] = (11, 7)) -> Inputs:
    """Two texts, one of them padded."""
    made = text_batch(61, lengths, padding, key=key)  # type: ignore[arg-type]
    return {name: made[name] for name in ("input_ids", "attention_mask")}


def goldens() -> Iterator[Case | TaskCase]:
    for decoder in DECODERS:
        yield from cases(decoder)
        if decoder.model in WRITERS:
            config_class = getattr(transformers, f"{decoder.config or decoder.prefix}Config")
            config = partial(config_class, **(decoder.base | decoder.changes | WRITERS[decoder.model]))
            yield from text_generation_goldens(decoder.model, decoder.prefix + decoder.heads["causal-lm"], config)


def cases(decoder: Decoder) -> Iterator[Case]:
    config_class = getattr(transformers, f"{decoder.config or decoder.prefix}Config")

    def case(name: str, model_class: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = config_class(**(decoder.base | decoder.changes | changes))
        # With biases of distance, Falcon's plain attention adds them twice.
        attention = "sdpa" if getattr(config, "alibi", False) is True else "eager"
        return Case(f"{decoder.model}/{name}", model_class, config, inputs, notes, attention=attention)

    language = decoder.prefix + decoder.heads["causal-lm"]
    right, left = batch("right"), batch("left")
    for name, suffix in decoder.heads.items():
        model_class = decoder.prefix + suffix
        if hasattr(transformers, model_class):
            changes = {"num_labels": 3} if name in LABELLED else {}
            yield case(name, model_class, "Two sequences, the second padded on the right.", right, **changes)
    if decoder.model == "openai_gpt":
        return  # Its padding on the left sees what comes after it.
    yield case("left-padding", language, "The second sequence is padded on the left.", left)
    if hasattr(transformers, f"{decoder.prefix}ForSequenceClassification"):
        pooled = decoder.prefix + decoder.heads["sequence-classification"]
        yield case(
            "left-padding-classification", pooled, "The last token of text padded on the left.", left, num_labels=3
        )
    if decoder.model == "llama":
        ids = {"input_ids": batch("none")["input_ids"]}
        yield case("ids-only", language, "No attention_mask: all ones.", ids)
        positions = np.stack([np.arange(11), np.arange(3, 14)]).astype(np.int64)
        yield case("position-ids", language, "Positions given.", right | {"position_ids": positions})
        yield case("single-token", language, "One sequence of one token.", batch("none", "single", (1,)))
        long = batch("right", "long", (21, 17))
        for rope_type in ("dynamic", "longrope"):
            name = f"rope-{rope_type}"
            # Not the language model: with frequencies of the text's length, steps from a cache give other scores.
            yield case(f"{name}-long", "LlamaModel", "More positions than were trained.", long, **ROPES[name])
    for name, changes in decoder.cases.items():
        notes = ", ".join(f"{key} {value}" for key, value in changes.items())
        yield case(name, language, f"{notes}.", left if "window" in name else right, **changes)
