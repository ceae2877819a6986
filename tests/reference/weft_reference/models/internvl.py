"""InternVL: square tiles whose patches stand side by side four at a time, and its vision model alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import InternVLConfig, InternVLVisionConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, texts
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import tiles, vocab_size

MODELS = ROOTS = ("internvl", "internvl-vision")
WRITER = "InternVLForConditionalGeneration"


def vision_sizes(**changes: Any) -> dict[str, Any]:
    sizes = {
        "hidden_size": 12,
        "intermediate_size": 18,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "image_size": [16, 16],
        "patch_size": [4, 4],
    }
    return sizes | changes


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> InternVLConfig:
    sizes = {
        "model_type": "qwen2",
        "vocab_size": 99,
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
    }
    return InternVLConfig(
        text_config=sizes | (text or {}),
        vision_config=vision_sizes(**(vision or {})) | {"model_type": "internvl_vision"},
        **({"image_token_id": IMAGE, "image_seq_length": 4} | changes),
    )


def case(
    name: str, head: str, notes: str, padding: str = "left", store: Store | None = None, each: int = 4, **changes: Any
) -> Case:
    chosen = config(**changes)
    inputs = texts([[1, 8 + each - 4], [2]], [each, 2 * each, each], padding)
    size = chosen.vision_config.image_size[0]
    pixels = {"pixel_values": floats("pixels", (4, 3, size, size), -2.0, 2.0)}
    return Case(f"internvl/{name}", head, chosen, inputs | pixels, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for name, notes, changes in (
        ("base", "Two images.", {}),
        (
            "biases",
            "Biases of queries, keys and values, another activation.",
            {"attention_bias": True, "hidden_act": "relu"},
        ),
    ):
        pixels = {"pixel_values": floats("pixels", (2, 3, 16, 16), -2.0, 2.0)}
        sizes = InternVLVisionConfig(**vision_sizes(**changes))
        yield Case(f"internvl-vision/{name}", "InternVLVisionModel", sizes, pixels, notes)
    for name, notes, size in (
        ("other-size", "Images larger than the configuration's, whose position embeddings are interpolated.", (24, 24)),
        ("odd-size", "Images that are no square, with a row of pixels behind the last patch.", (13, 20)),
    ):
        pixels = {"pixel_values": floats("other", (2, 3, *size), -2.0, 2.0)}
        yield Case(f"internvl-vision/{name}", "InternVLVisionModel", InternVLVisionConfig(**vision_sizes()), pixels, notes)
    yield case("base", "InternVLModel", "Three images, the second of two tiles.")
    yield case("next-token", WRITER, "Three images, the second of two tiles; padding on the left.")
    yield case("padded-right", WRITER, "Padding on the right.", "right")
    alone = text_batch(IMAGE, (7, 4), "left", key="internvl")
    del alone["token_type_ids"]
    yield Case("internvl/text-alone", WRITER, config(), alone, "Two texts without images.")
    for name, text in (("llama", {"attention_bias": True}), ("qwen3", {"head_dim": 6})):
        text = {"model_type": name} | text
        yield case(name, WRITER, f"The language model is a {name}.", text=text)
    one = {"downsample_ratio": 1.0, "image_seq_length": 16}
    yield case(
        "every-patch",
        WRITER,
        "Every patch is a token; another activation.",
        each=16,
        projector_hidden_act="relu",
        **one,
    )
    yield case("earlier-layer", WRITER, "What goes into the last layer.", vision_feature_layer=-2)
    untied = {"tie_word_embeddings": False}
    yield case("untied", WRITER, "Scores of tokens have a table of their own.", **untied, text=untied)
    few = {"num_hidden_layers": 1}
    yield case(
        "file", WRITER, "model.safetensors as save_pretrained writes it.", store=stores.whole, text=few, vision=few
    )
    small = {"vocab_size": vocab_size() + 3, "max_position_embeddings": 200}
    yield from tiles(config(text=small, image_token_id=vocab_size() + 1))
