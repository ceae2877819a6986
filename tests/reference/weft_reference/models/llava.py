"""LLaVA: images in the places of tokens, one or two a text, by every choice of layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import LlavaConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models import clip_vision
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import tasks, vocab_size

IMAGE = 90


def text_sizes(**changes: Any) -> dict[str, Any]:
    tiny = {
        "model_type": "llama",
        "vocab_size": 99,
        "hidden_size": 16,
        "intermediate_size": 20,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
    }
    return tiny | changes


"""Language models besides Llama, by `model_type`: what is theirs alone."""
LANGUAGES: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 4},
    "qwen2": {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    "qwen3": {"head_dim": 6, "attention_bias": True},
    "gemma": {"head_dim": 6, "num_key_value_heads": 1},
    "gemma2": {"head_dim": 6, "sliding_window": 4, "query_pre_attn_scalar": 9, "attn_logit_softcapping": 2.0},
    "phi3": {"pad_token_id": 0},
}

"""Published files say few fields; the others are those of the model's own class."""
FEW = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "image_size", "patch_size")


def vision_sizes(**changes: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 3, "image_size": 8}
    return clip_vision.sizes(**(sizes | changes)) | {"model_type": changes.get("model_type", "clip_vision_model")}


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> LlavaConfig:
    return LlavaConfig(
        text_config=text_sizes(**(text or {})),
        vision_config=vision_sizes(**(vision or {})),
        **({"image_token_index": IMAGE, "image_seq_length": 4} | changes),
    )


def texts(places: list[list[int]], features: list[int], padding: str = "left") -> dict[str, np.ndarray]:
    """Texts with the features of images, so many each, from the given positions on; shorter ones are padded."""
    counts = iter(features)
    blocks = [[(place, next(counts)) for place in row] for row in places]
    lengths = [7 + sum(count for _, count in row) for row in blocks]
    batch = text_batch(IMAGE, tuple(lengths), padding, key="llava")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    for row, images in enumerate(blocks):
        seen = np.flatnonzero(mask[row])
        for place, count in images:
            ids[row, seen[place : place + count]] = IMAGE
    return {"input_ids": ids, "attention_mask": mask}


def case(
    name: str,
    head: str,
    notes: str,
    inputs: dict[str, np.ndarray],
    images: int = 2,
    store: Store | None = None,
    **changes: Any,
) -> Case:
    chosen = config(**changes)
    size = chosen.vision_config.image_size
    pixels = floats("pixels", (images, chosen.vision_config.num_channels, size, size), -2.0, 2.0)
    return Case(f"llava/{name}", f"Llava{head}", chosen, inputs | {"pixel_values": pixels}, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    one = texts([[2], [1]], [4, 4])
    yield case("base", "Model", "Two texts with an image each.", one)
    yield case("next-token", "ForConditionalGeneration", "Two texts with an image each.", one)
    alone = text_batch(IMAGE, (7, 4), "left", key="llava")
    del alone["token_type_ids"]
    for name, head in (("text-base", "Model"), ("text-alone", "ForConditionalGeneration")):
        yield Case(f"llava/{name}", f"Llava{head}", config(), alone, "Two texts without images.")
    yield case(
        "two-images",
        "ForConditionalGeneration",
        "Two images in the first text, one in the second, which is padded on the left.",
        texts([[1, 8], [2]], [4, 4, 4]),
        3,
    )
    yield case(
        "padded-right",
        "ForConditionalGeneration",
        "Two images in the first text, one in the second, which is padded on the right.",
        texts([[1, 5], [2]], [4, 4, 4], "right"),
        3,
    )
    yield case(
        "last-layer",
        "ForConditionalGeneration",
        "The vision model's last layer with the class token; no biases in the projector, tied embeddings.",
        texts([[2], [1]], [5, 5]),
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        multimodal_projector_bias=False,
        projector_hidden_act="relu",
        text={"tie_word_embeddings": True},
    )
    yield case("first-layer", "ForConditionalGeneration", "What goes into the second layer.", one, vision_feature_layer=1)
    yield case(
        "file",
        "ForConditionalGeneration",
        "model.safetensors as save_pretrained writes it, under the names of published checkpoints.",
        one,
        store=stores.whole,
        text={"num_hidden_layers": 1},
        vision={"num_hidden_layers": 2},
    )
    yield from composed(one)
    small = {"vocab_size": vocab_size(), "max_position_embeddings": 200}
    yield from tasks("llava", config(text=small, image_token_index=vocab_size() - 1), tiles=False)
    small |= {"model_type": "qwen2"}
    composed_of = config(text=small, vision={"model_type": "siglip_vision_model"}, image_token_index=vocab_size() - 1)
    yield from tasks("llava", composed_of, tiles=False, name="-siglip-qwen2")


def composed(one: dict[str, np.ndarray]) -> Iterator[Case]:
    """Other language models and vision towers, chosen by the `model_type` of their configurations."""
    head = "ForConditionalGeneration"
    for name, text in LANGUAGES.items():
        yield case(name, head, f"The language model is a {name}.", one, text={"model_type": name} | text)
    siglip = {"model_type": "siglip_vision_model"}
    for strategy, each in (("full", 4), ("default", 3)):
        yield case(
            f"siglip-{strategy}",
            head,
            "SigLIP, which has no class token; `default` leaves out the first patch.",
            texts([[2], [1]], [each, each]),
            vision=siglip | {"layer_norm_eps": 0.01},
            vision_feature_select_strategy=strategy,
        )
    yield case(
        "siglip-layers",
        head,
        "The last layer of SigLIP beside an earlier one, without the norm after it, over Qwen2.",
        texts([[2], [1]], [4, 4]),
        vision=siglip | {"vision_use_head": False},
        text={"model_type": "qwen2"},
        vision_feature_select_strategy="full",
        vision_feature_layer=[-1, 1],
    )
    sizes = {"num_attention_heads": 8, "num_hidden_layers": 1}
    for name, told in (("few-fields", ("mistral", "siglip_vision_model")), ("no-model-type", (None, None))):
        kept = [field for field in FEW if field != "model_type" or told[0]]
        text, vision = (sizes_of(sizes, kind, kept) for sizes, kind in zip((text_sizes(**sizes), vision_sizes()), told, strict=True))
        chosen = LlavaConfig(
            text_config=text, vision_config=vision, image_token_index=IMAGE, vision_feature_select_strategy="full"
        )
        each = 4 if told[0] else 5
        pixels = {"pixel_values": floats("pixels", (2, 3, 8, 8), -2.0, 2.0)}
        yield Case(
            f"llava/{name}",
            f"Llava{head}",
            chosen,
            texts([[2], [1]], [each, each]) | pixels,
            "Fields that are left out have the values of the classes that `model_type` names, or of LLaVA's own.",
            written={"text_config": text, "vision_config": vision},
        )


def sizes_of(sizes: dict[str, Any], kind: str | None, kept: list[str]) -> dict[str, Any]:
    """A configuration that says these fields alone."""
    return {name: value for name, value in (sizes | {"model_type": kind}).items() if name in kept}
