"""BEiT and Data2Vec's vision model: biases of each layer, of all, of neither; positions; both ways to pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, integers
from weft_reference.models.deit import TINY
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import semantic

KIN = {"beit": "Beit", "data2vec-vision": "Data2VecVision"}
MODELS = tuple(KIN)


POSITIONS = {"use_absolute_position_embeddings": True}
# Of heads for segmentation.
DECODED = {
    "image_size": 20,
    "num_hidden_layers": 4,
    "out_indices": [1, 2, 3, 4],
    "num_labels": 4,
    "auxiliary_channels": 6,
}


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in KIN.items():
        yield from kin(model, prefix)
        yield tasks(model, prefix)
        yield segments(model, prefix)


def sizes(model: str, **changes: Any) -> dict[str, Any]:
    own = {key: value for key, value in TINY.items() if key != "encoder_stride"}
    return own | ({"vocab_size": 11} if model == "beit" else {}) | changes


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(name: str, head: str, notes: str, store: Store | None = None, inputs: dict | None = None, told: dict | None = None, **changes: Any) -> Case:
        config = getattr(transformers, f"{prefix}Config")(**sizes(model, **changes))
        pixels = {"pixel_values": floats("pixels", (2, 3, config.image_size, config.image_size), -2.0, 2.0)}
        return Case(f"{model}/{name}", prefix + head, config, pixels | (inputs or {}), notes, store, forward=told or {})

    classes = "ForImageClassification"
    own, shared = {"use_relative_position_bias": True}, {"use_shared_relative_position_bias": True}
    yield case("base", "Model", "Two images; no biases by distance.")
    yield case("own-biases", "Model", "Each layer has biases by distance; the class token is the pooled one.", use_mean_pooling=False, **own)
    yield case("shared-biases", "Model", "Layers share biases by distance; positions are added.", use_absolute_position_embeddings=True, **shared)
    yield case("both-biases", classes, "Biases of each layer and of all; no scales.", num_labels=3, layer_scale_init_value=0.0, **own, **shared)
    told, wide = {"interpolate_pos_encoding": True}, {"pixel_values": floats("wide", (2, 3, 28, 20), -2.0, 2.0)}
    yield case("interpolated", "Model", "Images of another size; biases of each layer.", inputs=wide, told=told, **own)
    yield case("interpolated-both", classes, "Images of another size; biases of all, and positions.", inputs=wide, told=told, num_labels=3, **shared, **POSITIONS)
    yield case("class-token", classes, "Classes by the class token.", num_labels=3, use_mean_pooling=False)
    yield case("file", classes, "model.safetensors as save_pretrained writes it.", stores.whole, num_labels=3, **own, **shared)
    places = "ForSemanticSegmentation"
    yield case("semantic-segmentation", places, "Maps of 20, 10, 5 and 2 rows, pooled to windows that overlap.", **own, **DECODED)
    yield case("segmentation-file", places, "Under the names of published checkpoints; no auxiliary head.", stores.whole, use_auxiliary_head=False, **DECODED)
    if model == "beit":
        masked = {"bool_masked_pos": integers("masked", (2, 9), 0, 2).astype(bool)}
        tokens = {"use_mask_token": True, "use_mean_pooling": False}
        yield case("masked-image-modeling", "ForMaskedImageModeling", "Some patches hidden.", inputs=masked, **tokens, **shared)
        four = {"num_hidden_layers": 4, "use_mean_pooling": False}
        yield from backbone(model, prefix, sizes(model, **four, **own), (12, 12))
        yield case("backbone-interpolated", "Backbone", "Images of another size; biases of all.", inputs=wide, told=told, **four, **shared, **POSITIONS)
        pyramid = DECODED | {"add_fpn": True, "out_indices": [0, 1, 3, 4]}
        yield case("backbone-pyramid", "Backbone", "Maps of 20, 10, 5 and 2 rows.", **own, **pyramid)


def tasks(model: str, prefix: str) -> VisionTaskCase:
    labels = ["warp", "weft", "loom", "shuttle"]
    config = getattr(transformers, f"{prefix}Config")(**sizes(model), use_relative_position_bias=True, id2label=dict(enumerate(labels)))
    config.label2id = {name: index for index, name in enumerate(labels)}
    return VisionTaskCase(
        f"{model}/tasks/image-classification",
        "image-classification",
        f"{prefix}ForImageClassification",
        config,
        transformers.BeitImageProcessorPil(size={"height": 14, "width": 14}, do_center_crop=True, crop_size={"height": 12, "width": 12}),
        (Call("rgb.png"), Call(["tall.png", "rgb.png", "grey.png"], {"top_k": 2})),
        "One picture and several, whose middles are cut out.",
    )


def segments(model: str, prefix: str) -> VisionTaskCase:
    config = getattr(transformers, f"{prefix}Config")(**sizes(model, **DECODED, use_auxiliary_head=False, layer_scale_init_value=0.2, **POSITIONS))
    processor = transformers.BeitImageProcessorPil(size={"height": 20, "width": 20}, do_center_crop=False)
    return semantic(model, f"{prefix}ForSemanticSegmentation", config, processor)
