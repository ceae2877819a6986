"""SigLIP's vision model: patches without a class token, summed up by a probe or by nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import SiglipConfig, SiglipImageProcessorPil, SiglipVisionConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import clip_vision, siglip_text
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase


def sizes(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in clip_vision.sizes().items() if name != "projection_dim"} | changes


def case(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
    chosen = SiglipVisionConfig(**sizes(**changes))
    return Case(f"siglip-vision/{name}", "SiglipVisionModel", chosen, clip_vision.images(chosen), notes, store)


def processor() -> SiglipImageProcessorPil:
    edge = sizes()["image_size"]
    return SiglipImageProcessorPil(size={"height": edge, "width": edge})


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Two images.")
    yield case("no-head", "No probe, no vector.", vision_use_head=False)
    larger = {"pixel_values": floats("larger", (2, 3, 20, 16), -2.0, 2.0)}
    told = {"interpolate_pos_encoding": True}
    chosen = SiglipVisionConfig(**sizes())
    notes = "Images larger than the configuration's."
    yield Case("siglip-vision/interpolated", "SiglipVisionModel", chosen, larger, notes, forward=told)
    yield case(
        "other-sizes",
        "The image's edge is no multiple of the patch's; another function, an epsilon that matters.",
        image_size=14,
        patch_size=3,
        hidden_size=20,
        num_attention_heads=5,
        num_hidden_layers=3,
        num_channels=1,
        hidden_act="gelu",
        layer_norm_eps=0.1,
    )
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole, num_hidden_layers=1)
    small = {"num_hidden_layers": 1}
    whole = SiglipConfig(text_config=siglip_text.sizes(**small), vision_config=sizes(**small))
    both = stores.from_whole("SiglipModel", whole)
    yield case("file-of-both", "The vision model in a checkpoint of both.", both, **small)
    yield VisionTaskCase(
        "siglip-vision/tasks/image-feature-extraction",
        "image-feature-extraction",
        "SiglipVisionModel",
        SiglipVisionConfig(**sizes()),
        processor(),
        (Call("rgb.png"), Call(["tall.png", "grey.png"]), Call("wide.png", {"pool": True})),
        "One picture and several; patches, and the probe's vector.",
    )
