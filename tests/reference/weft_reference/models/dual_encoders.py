"""Dual encoders of images and texts whose towers are not CLIP's: ALIGN, AIMv2, and any vision and text model."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats, text_batch
from weft_reference.models import clip_text, clip_vision, efficientnet

MODELS = ("align", "aimv2", "aimv2-vision", "tipsv2", "vision-text-dual-encoder")
BERT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
}
GATED: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
PATCHES: dict[str, Any] = {"image_size": 12, "patch_size": 4}


def pixels(key: str, *shape: int) -> dict[str, np.ndarray]:
    return {"pixel_values": floats(key, shape, -2.0, 2.0)}


def align_config(**changes: Any) -> transformers.AlignConfig:
    # The embedding of an image is as wide as the last feature map.
    vision = efficientnet.TINY | changes.pop("vision", {})
    wide = transformers.models.align.modeling_align.round_filters(transformers.AlignVisionConfig(**vision), vision["out_channels"][-1])
    return transformers.AlignConfig(text_config=BERT | changes.pop("text", {}), vision_config=vision, projection_dim=wide, **changes)


def align(name: str, notes: str, size: tuple[int, int] = (24, 24), **changes: Any) -> Case:
    store = changes.pop("store", None)
    inputs = text_batch(99, (9, 6, 4), key="align") | pixels("align", 2, 3, *size)
    return Case(f"align/{name}", "AlignModel", align_config(**changes), inputs, notes, store)


def aimv2_config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> transformers.Aimv2Config:
    return transformers.Aimv2Config(
        text_config=GATED | {"vocab_size": 99, "max_position_embeddings": 20, "eos_token_id": clip_text.END} | (text or {}),
        vision_config=GATED | PATCHES | {"hidden_size": 24, "num_attention_heads": 3} | (vision or {}),
        **({"projection_dim": 10} | changes),
    )


def aimv2(name: str, notes: str, **changes: Any) -> Case:
    store, padding = changes.pop("store", None), changes.pop("padding", "right")
    size = changes.pop("size", (12, 12))
    inputs = clip_text.texts((9, 6, 7), padding, key="aimv2") | pixels("aimv2", 2, 3, *size)
    return Case(f"aimv2/{name}", "Aimv2Model", aimv2_config(**changes), inputs, notes, store)


def aimv2_vision(name: str, notes: str, **changes: Any) -> Case:
    store, size = changes.pop("store", None), changes.pop("size", (12, 12))
    config = transformers.Aimv2VisionConfig(**GATED | PATCHES | changes)
    return Case(f"aimv2-vision/{name}", "Aimv2VisionModel", config, pixels("aimv2", 2, 3, *size), notes, store)


def dual_config(vision: transformers.PreTrainedConfig, **changes: Any) -> transformers.VisionTextDualEncoderConfig:
    text = transformers.BertConfig(**BERT | changes.pop("text", {}))
    return transformers.VisionTextDualEncoderConfig.from_vision_text_configs(vision, text, **({"projection_dim": 10} | changes))


def dual(name: str, notes: str, vision: transformers.PreTrainedConfig, **changes: Any) -> Case:
    store = changes.pop("store", None)
    inputs = text_batch(99, (9, 6, 4), key="dual") | pixels("dual", 2, 3, 12, 12)
    return Case(f"vision-text-dual-encoder/{name}", "VisionTextDualEncoderModel", dual_config(vision, **changes), inputs, notes, store)


def tipsv2_config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None) -> transformers.Tipsv2Config:
    return transformers.Tipsv2Config(
        text_config=BERT | (text or {}),
        vision_config={"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2} | PATCHES | (vision or {}),
        temperature_init_value=0.5,
    )


def tipsv2(name: str, notes: str, size: tuple[int, int] = (12, 12), **changes: Any) -> Case:
    store, padding = changes.pop("store", None), changes.pop("padding", "right")
    inputs = text_batch(99, (9, 6, 4), padding, key="tipsv2") | pixels("tipsv2", 2, 3, *size)
    del inputs["token_type_ids"]
    return Case(f"tipsv2/{name}", "Tipsv2Model", tipsv2_config(**changes), inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield tipsv2("base", "Two images, three texts, padded on the right.")
    yield tipsv2("other-size", "Images that are no squares; two registers, no scale, padding on the left.", (20, 8), padding="left", text={"scale_sqrt_depth": False, "hidden_act": "gelu"}, vision={"num_register_tokens": 2, "qkv_bias": False})
    yield tipsv2("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    yield align("base", "Two images, three texts, one whole.")
    yield align("odd-size", "Images that are no squares; the largest of each channel; another function.", (31, 22), vision={"pooling_type": "max", "hidden_act": "relu"})
    yield align("file", "model.safetensors as save_pretrained writes it.", store=stores.whole, vision={"width_coefficient": 0.1, "hidden_dim": 128})
    yield aimv2("base", "Two images, three texts, padded on the right.")
    yield aimv2("biases", "Biases everywhere, padding on the left, other functions.", padding="left", text={"qkv_bias": True, "mlp_bias": True, "hidden_act": "gelu"}, vision={"qkv_bias": True, "mlp_bias": True, "hidden_act": "gelu"})
    yield aimv2("small-scale", "The factor of similarities is cut.", max_logit_scale=1.001)
    yield aimv2("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    yield aimv2_vision("base", "Two images.")
    yield aimv2_vision("native", "Sinusoidal position embeddings, images that are no squares.", is_native=True, size=(20, 12), qkv_bias=True)
    yield aimv2_vision("no-head", "No attention pooling.", use_head=False, mlp_bias=True)
    yield aimv2_vision("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    vit = transformers.ViTConfig(**GATED | PATCHES | {"hidden_size": 12, "num_attention_heads": 3})
    yield dual("vit", "ViT and BERT.", vit)
    yield dual("file", "model.safetensors as save_pretrained writes it.", vit, store=stores.whole)
    clip = transformers.CLIPVisionConfig(**clip_vision.sizes(hidden_size=12, num_attention_heads=3))
    yield dual("clip-vision", "CLIP's vision model and BERT.", clip, text={"hidden_act": "relu"})


def sides(rng: Random) -> dict[str, Any]:
    heads = rng.choice((1, 2, 3))
    return {
        "hidden_size": heads * 4 * rng.randint(1, 3),
        "num_attention_heads": heads,
        "num_hidden_layers": rng.randint(1, 4),
        "intermediate_size": rng.randint(8, 60),
    }


def random_case(model: str, rng: Random, path: str) -> Case:
    lengths = tuple(sorted((rng.randint(2, 20) for _ in range(rng.randint(1, 4))), reverse=True))
    images, patch = rng.randint(1, 3), rng.randint(2, 6)
    size = patch * rng.randint(1, 4) + rng.randrange(patch)
    image = {"patch_size": patch, "image_size": size}
    texts = text_batch(99, lengths, rng.choice(("right", "left")), key=path)
    if model == "tipsv2":
        width = sides(rng)
        vision = {name: width[name] for name in ("hidden_size", "num_attention_heads")} | image | {"num_hidden_layers": 2, "mlp_ratio": rng.randint(1, 4)}
        del texts["token_type_ids"]
        shape = (images, 3, patch * rng.randint(1, 5), patch * rng.randint(1, 5))
        return Case(path, "Tipsv2Model", tipsv2_config(width, vision), texts | pixels(path, *shape), "Drawn at random.", stores.whole)
    if model == "align":
        chosen = align_config(text=sides(rng), vision={"depth_divisor": rng.choice((4, 8)), "depth_coefficient": rng.choice((1.0, 1.3))})
        shape = (images, 3, rng.randint(20, 40), rng.randint(20, 40))
        return Case(path, "AlignModel", chosen, texts | pixels(path, *shape), "Drawn at random.", stores.whole)
    if model == "vision-text-dual-encoder":
        kind = rng.choice((transformers.ViTConfig, transformers.CLIPVisionConfig))
        chosen = dual_config(kind(**sides(rng) | image), text=sides(rng), projection_dim=rng.randint(1, 20))
        return Case(path, "VisionTextDualEncoderModel", chosen, texts | pixels(path, images, 3, size, size), "Drawn at random.", stores.whole)
    biases = {"qkv_bias": rng.random() < 0.5, "mlp_bias": rng.random() < 0.5}
    native = rng.random() < 0.5
    shape = (patch * rng.randint(1, 5), patch * rng.randint(1, 5)) if native else (size, size)
    vision = sides(rng) | image | biases | {"is_native": native}
    if model == "aimv2-vision":
        config = transformers.Aimv2VisionConfig(**vision, use_head=rng.random() < 0.7)
        return Case(path, "Aimv2VisionModel", config, pixels(path, images, 3, *shape), "Drawn at random.", stores.whole)
    chosen = aimv2_config(sides(rng) | biases, vision | {"is_native": False}, projection_dim=rng.randint(1, 20))
    inputs = clip_text.texts(lengths, rng.choice(("right", "left")), key=path) | pixels(path, images, 3, size, size)
    return Case(path, "Aimv2Model", chosen, inputs, "Drawn at random.", stores.whole)
