"""PP-FormulaNet: a vision encoder as SAM's, two convolutions, and mBART's decoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from transformers import PPFormulaNetConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch

MODELS = ROOTS = ("pp_formulanet",)
TEXT: dict[str, Any] = {
    "vocab_size": 61,
    "d_model": 16,
    "decoder_layers": 3,
    "decoder_ffn_dim": 20,
    "decoder_attention_heads": 4,
    "encoder_layers": 1,
    "encoder_attention_heads": 4,
    "max_position_embeddings": 24,
}
VISION: dict[str, Any] = {
    "hidden_size": 12,
    "output_channels": 8,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "image_size": 20,
    "patch_size": 4,
    "window_size": 3,
    "global_attn_indexes": [1],
    "mlp_dim": 18,
    "post_conv_in_channels": 8,
    "post_conv_mid_channels": 10,
    "post_conv_out_channels": 14,
    "decoder_hidden_size": 16,
}


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None) -> PPFormulaNetConfig:
    return PPFormulaNetConfig(text_config=TEXT | (text or {}), vision_config=VISION | (vision or {}))


def case(name: str, notes: str, lengths: tuple[int, ...] = (7, 4), store: Store | None = None, **changes: Any) -> Case:
    """An image each, and texts padded on the right."""
    chosen = config(**changes)
    size = chosen.vision_config.image_size
    pixels = floats(f"pixels.{name}", (len(lengths), 3, size, size), -2.0, 2.0)
    text = text_batch(chosen.text_config.vocab_size, lengths, "right", key="pp_formulanet")
    inputs = {"pixel_values": pixels} | {f"decoder_{field}": text[field] for field in ("input_ids", "attention_mask")}
    return Case(f"pp_formulanet/{name}", "PPFormulaNetForConditionalGeneration", chosen, inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield case("next-token", "Two images, a text each.")
    plain = {"use_abs_pos": False, "use_rel_pos": False, "qkv_bias": False, "window_size": 0, "hidden_act": "relu", "layer_norm_eps": 1e-3}
    yield case("plain", "Positions and windows nowhere; other activation functions.", (5, 6, 2), vision=plain, text={"activation_function": "relu"})
    yield case("unscaled", "Token embeddings are not scaled.", text={"scale_embedding": False})
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers, heads, windows and channels."""
    heads, towers, layers = rng.choice((1, 2, 4)), rng.choice((1, 2, 3)), rng.randint(1, 4)
    text = {"decoder_attention_heads": heads, "d_model": heads * 8, "decoder_layers": rng.randint(1, 4), "decoder_ffn_dim": rng.randint(9, 40)}
    vision = {"num_attention_heads": towers, "hidden_size": towers * 6, "num_hidden_layers": layers, "image_size": rng.choice((16, 24))}
    vision |= {"window_size": rng.choice((0, 2, 3)), "global_attn_indexes": [layers - 1], "decoder_hidden_size": heads * 8}
    vision |= {"post_conv_mid_channels": rng.randint(3, 12), "post_conv_out_channels": rng.randint(3, 12)}
    return replace(case("random", "Drawn at random.", (rng.randint(5, 12), 4), stores.whole, text=text, vision=vision), path=path)


DRAWN = {"pp_formulanet": random_case}
