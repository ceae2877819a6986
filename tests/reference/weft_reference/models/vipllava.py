"""VipLLaVA: several layers of the vision model side by side, or one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import VipLlavaConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE, text_sizes, texts, vision_sizes
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import tasks, vocab_size


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> VipLlavaConfig:
    return VipLlavaConfig(
        text_config=text_sizes(**(text or {})),
        vision_config=vision_sizes(**(vision or {})),
        **({"image_token_index": IMAGE, "image_seq_length": 4, "vision_feature_layer": [-2, 0, 1, -1]} | changes),
    )


def case(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
    inputs = texts([[1, 8], [2]], [4, 4, 4])
    pixels = floats("pixels", (3, 3, 8, 8), -2.0, 2.0)
    return Case(
        f"vipllava/{name}", f"VipLlava{head}", config(**changes), inputs | {"pixel_values": pixels}, notes, store
    )


def goldens() -> Iterator[Case | VisionTaskCase]:
    writer = "ForConditionalGeneration"
    yield case("base", "Model", "Four layers, from what goes into the first to what comes out of the last.")
    yield case("next-token", writer, "Two images in the first text, one in the second.")
    yield case(
        "one-layer",
        writer,
        "A layer alone, another activation and epsilon.",
        vision_feature_layer=2,
        projector_hidden_act="relu",
        projector_layernorm_eps=1e-3,
    )
    yield case(
        "qwen2", writer, "The language model is a Qwen2.", text={"model_type": "qwen2"}, vision={"num_hidden_layers": 2}
    )
    yield case(
        "file", writer, "model.safetensors as save_pretrained writes it.", stores.whole, text={"num_hidden_layers": 1}
    )
    small = {"vocab_size": vocab_size(), "max_position_embeddings": 200}
    yield from tasks("vipllava", config(text=small, image_token_index=vocab_size() - 1), tiles=False)
