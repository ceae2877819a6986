"""DINOv2, with and without registers: images of the configuration's size and of others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import BitImageProcessorPil, Dinov2Config, Dinov2WithRegistersConfig

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2, "image_size": 12, "patch_size": 4}
MODELS = ("dinov2", "dinov2_with_registers")
ROOTS = MODELS


def case(
    name: str, head: str, notes: str, size: tuple[int, int] = (12, 12), store: Store | None = None, **changes: Any
) -> Case:
    pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
    return Case(f"dinov2/{name}", f"Dinov2{head}", Dinov2Config(**(TINY | changes)), pixels, notes, store)


def with_registers(
    name: str, head: str, notes: str, size: tuple[int, int] = (12, 12), store: Store | None = None, **changes: Any
) -> Case:
    pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
    config = Dinov2WithRegistersConfig(**(TINY | {"num_register_tokens": 3} | changes))
    return Case(f"dinov2_with_registers/{name}", f"Dinov2WithRegisters{head}", config, pixels, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Two images of the configuration's size.")
    yield case("larger", "Model", "Larger images that are not square: positions are resized.", (18, 27))
    yield case("smaller", "Model", "Smaller images, no bias on queries, keys and values.", (8, 9), qkv_bias=False)
    yield case("image-classification", "ForImageClassification", "Three classes, by class token and patches.", num_labels=3)
    yield case(
        "file",
        "ForImageClassification",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        (16, 12),
        stores.whole,
        num_hidden_layers=1,
    )
    yield from backbone("dinov2", "Dinov2", TINY, (18, 27))
    yield from backbone("dinov2_with_registers", "Dinov2WithRegisters", TINY | {"apply_layernorm": False}, (18, 27))
    yield from of_registers()


def of_registers() -> Iterator[Case | VisionTaskCase]:
    case, classes = with_registers, "ForImageClassification"
    yield case("base", "Model", "Two images of the configuration's size.")
    yield case("larger", "Model", "Larger images that are not square: positions are resized.", (18, 27))
    large = {"image_size": 32}
    yield case("smaller", "Model", "Far smaller images: each position is a mean of many.", (9, 14), qkv_bias=False, **large)
    yield case("one-register", classes, "Class token and patches, without the register.", (8, 20), num_labels=3, num_register_tokens=1)
    notes = "model.safetensors as save_pretrained writes it, under the names of published checkpoints."
    yield case("file", classes, notes, (16, 12), stores.whole, num_hidden_layers=1)
    processor = BitImageProcessorPil(size={"shortest_edge": 16}, crop_size={"height": 12, "width": 12})
    for task, head, changes in (
        ("image-classification", classes, {"num_labels": 4}),
        ("image-feature-extraction", "Model", {}),
    ):
        yield VisionTaskCase(
            f"dinov2_with_registers/tasks/{task}",
            task,
            f"Dinov2WithRegisters{head}",
            Dinov2WithRegistersConfig(**(TINY | large | changes)),
            processor,
            (Call("rgb.png"), Call(["tall.png", "wide.png"])),
            "Pictures smaller than those that positions were learned for, as in published checkpoints.",
        )
