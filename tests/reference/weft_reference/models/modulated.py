"""FocalNet, LeViT and Pixio: contexts of several reaches, biases by distance, several class tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase

CLASSES = "ForImageClassification"
KIN = {"focalnet": "FocalNet", "levit": "Levit", "pixio": "Pixio"}
MODELS = tuple(KIN)
ROOTS = MODELS
TINY: dict[str, dict[str, Any]] = {
    "focalnet": {
        "embed_dim": 6,
        "depths": [1, 2, 1],
        "hidden_sizes": [12, 24, 24],
        "focal_levels": [2, 1, 3],
        "focal_windows": [3, 5, 3],
        "mlp_ratio": 2.0,
    },
    "levit": {
        "image_size": 48,
        "patch_size": 16,
        "hidden_sizes": [16, 24, 32],
        "num_attention_heads": [2, 3, 4],
        "depths": [2, 1, 1],
        "key_dim": [8, 4, 4],
        "attention_ratio": [2, 3, 2],
    },
    "pixio": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2, "image_size": 12, "patch_size": 4, "n_cls_tokens": 3},
}
SIZES = {"focalnet": (45, 70), "levit": (48, 48), "pixio": (18, 27)}


def case(
    model: str, name: str, head: str, notes: str, store: Store | None = None, size: tuple[int, int] | None = None, **changes: Any
) -> Case:
    config = getattr(transformers, f"{KIN[model]}Config")(**(TINY[model] | changes))
    pixels = {"pixel_values": floats("pixels", (2, config.num_channels, *(size or SIZES[model])), -2.0, 2.0)}
    return Case(f"{model}/{name}", KIN[model] + head, config, pixels, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    stored = "model.safetensors as save_pretrained writes it."
    for model in KIN:
        yield case(model, "base", "Model", "Two images.")
        if model == "pixio":
            yield case(model, "file", "Model", stored, stores.whole)
        else:
            yield case(model, "image-classification", CLASSES, "Three classes.", num_labels=3)
            yield case(model, "file", CLASSES, stored, stores.whole, num_labels=3)
    post = {"use_post_layernorm": True, "use_post_layernorm_in_modulation": True, "normalize_modulator": True}
    yield case("focalnet", "post-norm", "Model", "Norms behind layers and modulation; layer scale.", use_layerscale=True, **post)
    overlap = {"use_conv_embed": True, "hidden_act": "relu", "layer_norm_eps": 1e-2, "num_channels": 1}
    yield case("focalnet", "overlapping", CLASSES, "Windows of embeddings overlap.", size=(50, 41), **overlap)
    yield from backbone("focalnet", "FocalNet", TINY["focalnet"], (45, 70))
    yield case("levit", "teacher", f"{CLASSES}WithTeacher", "A distilled classifier beside the other.", num_labels=3)
    other = {"image_size": 80, "mlp_ratio": [2, 0, 1], "kernel_size": 5, "padding": 2, "num_channels": 1}
    yield case("levit", "other-sizes", "Model", "Stages of odd sides, one without MLPs; other windows.", size=(80, 80), **other)
    yield case("pixio", "same-size", "Model", "Images of the configuration's size; no biases.", size=(12, 12), qkv_bias=False, layer_norm_eps=1e-2)
    # The reference reads the network's norm for that of the feature maps where a file has both.
    yield from backbone("pixio", "Pixio", TINY["pixio"], (18, 27), file=False)
    labels = ["warp", "weft", "loom", "shuttle"]
    named = {"id2label": dict(enumerate(labels)), "label2id": {name: index for index, name in enumerate(labels)}}
    square = {"height": 48, "width": 48}
    for model, processor in (
        ("focalnet", transformers.BitImageProcessorPil(size={"shortest_edge": 50}, crop_size=square)),
        ("levit", transformers.LevitImageProcessorPil(size={"shortest_edge": 48}, crop_size=square)),
    ):
        yield VisionTaskCase(
            f"{model}/tasks/image-classification",
            "image-classification",
            KIN[model] + CLASSES,
            getattr(transformers, f"{KIN[model]}Config")(**TINY[model], **named),
            processor,
            (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
            "One picture and several.",
        )
    yield VisionTaskCase(
        "pixio/tasks/image-feature-extraction",
        "image-feature-extraction",
        "PixioModel",
        transformers.PixioConfig(**TINY["pixio"]),
        transformers.ViTImageProcessorPil(size={"height": 16, "width": 12}),
        (Call("rgb.png"), Call("grey.png", {"pool": True})),
        "Images that are higher than wide.",
    )
