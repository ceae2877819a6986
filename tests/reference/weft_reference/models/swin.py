"""Swin Transformers, both versions and Donut's: windows that fit, that are filled up, and that are as large as the stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, integers
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

TINY = {
    "image_size": 16,
    "patch_size": 2,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
    "mlp_ratio": 2.0,
    "encoder_stride": 4,
}
KIN = {"swin": "Swin", "swinv2": "Swinv2", "donut-swin": "DonutSwin"}
# Norms after sums of few channels are too steep for half precision.
WIDTHS = {"swin": 8, "swinv2": 16, "donut-swin": 8}
MODELS = tuple(KIN)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)
        yield tasks(model, prefix)
        if model != "donut-swin":
            small = TINY | {"embed_dim": WIDTHS[model], "image_size": [13, 21], "window_size": 3}
            yield from backbone(model, prefix, small, (13, 21))


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(
        name: str, head: str, notes: str, store: Store | None = None, inputs: dict | None = None, size: tuple | None = None, **changes: Any
    ) -> Case:
        config = getattr(transformers, f"{prefix}Config")(**(TINY | {"embed_dim": WIDTHS[model]} | changes))
        edge = config.image_size
        size = size or (edge if isinstance(edge, list) else [edge, edge])
        pixels = {"pixel_values": floats("pixels", (2, config.num_channels, *size), -2.0, 2.0)}
        return Case(f"{model}/{name}", prefix + head, config, pixels | (inputs or {}), notes, store)

    classes = "ForImageClassification"
    yield case("base", "Model", "Two images; shifted windows, then one window that is the whole stage.")
    yield case(
        "filled-up",
        "Model",
        "Windows that are filled up and stages of odd rows; another function and ratio, no biases.",
        image_size=22,
        window_size=3,
        depths=[2, 3],
        hidden_act="relu",
        mlp_ratio=1.5,
        qkv_bias=False,
        layer_norm_eps=1e-2,
    )
    yield case("wide", "Model", "Images that are no squares, nor multiples of patches; one channel.", image_size=[13, 21], window_size=3, num_channels=1)
    yield case("any-size", "Model", "Images of another size than the configuration's.", size=(23, 30), window_size=3)
    yield case("one-window", "Model", "Images so small that a later stage is one window, which does not shift.", size=(12, 30), window_size=3)
    yield case("image-classification", classes, "Three classes.", num_labels=3)
    if model != "donut-swin":
        masked = {"bool_masked_pos": integers("masked", (2, 64), 0, 2).astype(bool)}
        pixels = "ForMaskedImageModeling"
        yield case("masked-image-modeling", pixels, "Some patches hidden behind the mask token.", inputs=masked)
        yield case("masked-image-modeling-unmasked", pixels, "No mask is given: every patch is seen.")
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3)
    if model == "swin":
        yield case("positions", "Model", "Positions of patches are added.", use_absolute_embeddings=True, depths=[1, 1])
    if model == "swinv2":
        yield case(
            "small-stages",
            "Model",
            "Windows larger than the last stage, which was learned with others.",
            window_size=4,
            depths=[2, 2, 2],
            num_heads=[2, 2, 4],
            pretrained_window_sizes=[3, 6, 0],
        )


def tasks(model: str, prefix: str) -> VisionTaskCase:
    labels = ["warp", "weft", "loom", "shuttle"]
    config = getattr(transformers, f"{prefix}Config")(**TINY, embed_dim=WIDTHS[model], id2label=dict(enumerate(labels)))
    config.label2id = {name: index for index, name in enumerate(labels)}
    return VisionTaskCase(
        f"{model}/tasks/image-classification",
        "image-classification",
        f"{prefix}ForImageClassification",
        config,
        transformers.ViTImageProcessorPil(size={"height": 16, "width": 16}, resample=3),
        (Call("rgb.png"), Call(["tall.png", "rgb.png", "grey.png"], {"top_k": 2})),
        "One picture and several.",
    )
