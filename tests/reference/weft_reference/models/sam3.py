"""SAM 3: its vision transformer, and masks of what points, boxes and masks stand for on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.sam2 import prompt_cases, prompted

MODELS = ("sam3_vit_model", "sam3_vision_model", "sam3_tracker", "sam3", "sam3_lite_text", "sam3_lite_text_text_model")


def vit(**changes: Any) -> PreTrainedConfig:
    """Seven by seven patches, whose windows of four need padding, with positions of three by three."""
    sizes = {"hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 3, "num_attention_heads": 3, "image_size": 56}
    windows = {"patch_size": 8, "pretrain_image_size": 24, "window_size": 4, "global_attn_indexes": [1]}
    return transformers.Sam3ViTConfig(**(sizes | windows | changes))


def vision(factors: list[float] | None = None, width: int = 16) -> PreTrainedConfig:
    sizes = [[28, 28], [14, 14], [7, 7]]
    return transformers.Sam3VisionConfig(backbone_config=vit(), fpn_hidden_size=width, scale_factors=factors, backbone_feature_sizes=sizes)


def goldens() -> Iterator[Case]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = vit(**changes)
        images = {"pixel_values": floats("pixels", (2, 3, config.image_size, config.image_size), -2.0, 2.0)}
        return Case(f"sam3_vit_model/{name}", "Sam3ViTModel", config, images, notes, store)

    yield one("base", "Windows and a global layer; positions repeated twice and a third.")
    other = {"hidden_act": "relu", "layer_norm_eps": 0.01, "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0}}
    yield one("whole-positions", "As many positions as patches; another base, all layers in windows.", pretrain_image_size=56, global_attn_indexes=[], num_attention_heads=2, **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)

    images = {"pixel_values": floats("pixels", (2, 3, 56, 56), -2.0, 2.0)}
    yield Case("sam3_vision_model/base", "Sam3VisionModel", vision(), images, "Maps four times and twice as large, as large, and half.")
    yield Case("sam3_vision_model/file", "Sam3VisionModel", vision([1.0, 2.0]), images, "model.safetensors as save_pretrained writes it.", stores.whole)

    def make(**decoder: Any) -> PreTrainedConfig:
        return prompted("Sam3Tracker", vision([4.0, 2.0, 1.0] if decoder else None), 56, 8, decoder)

    yield from prompt_cases("sam3_tracker", "Sam3Tracker", make, 56, 8)
    yield from concepts()
    yield from lite_concepts()


def concept(prefix: str = "Sam3", width: int = 16, **changes: Any) -> PreTrainedConfig:
    """Small detectors on the small image encoder, and a small text model, CLIP's or MobileCLIP's."""
    text = {"vocab_size": 99, "hidden_size": 12, "intermediate_size": 18, "num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 16}
    made = text | changes.pop("text", {})
    heads = {"hidden_size": width, "num_attention_heads": 2}
    layers = heads | {"num_layers": 2, "intermediate_size": 20}
    return getattr(transformers, f"{prefix}Config")(
        vision_config=vision(changes.pop("factors", None), width),
        text_config=transformers.CLIPTextConfig(**made) if prefix == "Sam3" else transformers.Sam3LiteTextTextConfig(**made),
        geometry_encoder_config=layers | {"roi_size": 3},
        detr_encoder_config=layers | changes.pop("encoder", {}),
        detr_decoder_config=layers | {"num_queries": 5} | changes.pop("decoder", {}),
        mask_decoder_config=heads | changes.pop("masks", {}),
    )


def concepts() -> Iterator[Case]:
    """What a text names in images."""

    def one(name: str, notes: str, store: Store | None = None, lengths: tuple[int, int] = (6, 4), **changes: Any) -> Case:
        inputs = text_batch(99, lengths, "right", key=name)
        del inputs["token_type_ids"]
        inputs["pixel_values"] = floats(f"pixels.{name}", (2, 3, 56, 56), -2.0, 2.0)
        return Case(f"sam3/{name}", "Sam3Model", concept(**changes), inputs, notes, store)

    yield one("base", "Two texts, the second padded.")
    other = {"encoder": {"num_layers": 1, "hidden_act": "gelu"}, "decoder": {"num_layers": 3, "num_queries": 3, "hidden_act": "gelu", "num_attention_heads": 4}}
    yield one("other", "Other layers, heads and functions; maps as large and twice as large.", factors=[2.0, 1.0, 0.5], masks={"num_upsampling_stages": 1}, text={"hidden_act": "gelu"}, lengths=(5, 5), **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)


def lite_concepts() -> Iterator[Case]:
    """The same with MobileCLIP's text encoder."""

    def one(name: str, notes: str, store: Store | None = None, lengths: tuple[int, int] = (6, 4), **changes: Any) -> Case:
        inputs = text_batch(99, lengths, "right", key=name)
        del inputs["token_type_ids"]
        inputs["pixel_values"] = floats(f"pixels.{name}", (2, 3, 56, 56), -2.0, 2.0)
        text = {"num_hidden_layers": 4, "repmixer_kernel_size": 5} | changes.pop("text", {})
        return Case(f"sam3_lite_text/{name}", "Sam3LiteTextModel", concept("Sam3LiteText", text=text, **changes), inputs, notes, store)

    yield one("base", "Two texts, the second padded; fewer tokens than positions.")
    text = {"vocab_size": 99, "hidden_size": 12, "intermediate_size": 18, "projection_dim": 10, "num_hidden_layers": 4, "num_attention_heads": 3}
    alone = transformers.Sam3LiteTextTextConfig(**text, max_position_embeddings=16, repmixer_kernel_size=5)
    read = text_batch(99, (9, 6), "right", key="alone")
    del read["token_type_ids"]
    for name, notes, store in (("base", "Two texts, the second padded.", None), ("file", "model.safetensors as save_pretrained writes it.", stores.whole)):
        yield Case(f"sam3_lite_text_text_model/{name}", "Sam3LiteTextTextModel", alone, read, notes, store)
    yield one("all-positions", "As many tokens as positions.", lengths=(16, 9))
    yield one("more-tokens", "More tokens than positions; a kernel longer than what is around most tokens.", lengths=(21, 21), text={"repmixer_kernel_size": 11})
    yield one("attention", "No RepMixer blocks; another function and epsilon.", text={"use_repmixer_blocks": False, "hidden_act": "relu", "layer_norm_eps": 0.01})
    yield one("one-layer", "A RepMixer block alone; a kernel of one.", text={"num_hidden_layers": 1, "repmixer_kernel_size": 1})
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)
