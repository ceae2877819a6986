"""T5Gemma 2: texts with images and without, windows of even and odd length, end-of-image tokens, every head, a padded batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import Padding, floats, integers, text_batch
from weft_reference.models.llava import texts

IMAGE, END = 90, 91
MODELS = ROOTS = ("t5gemma2", "t5gemma2_encoder")
STACK: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "query_pre_attn_scalar": 12,
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "final_logit_softcapping": 30.0,
    "max_position_embeddings": 64,
    "bos_token_id": 3,
}
SEEN: dict[str, Any] = {
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "image_size": 16,
    "patch_size": 4,
    "vision_use_head": False,
    "model_type": "siglip_vision_model",
}


def encoder(text: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    sizes = {"mm_tokens_per_image": 4, "eoi_token_index": END, "image_token_index": IMAGE}
    return {"text_config": STACK | (text or {}), "vision_config": SEEN} | sizes | changes


def config(
    text: dict[str, Any] | None = None, decoder: dict[str, Any] | None = None, **changes: Any
) -> transformers.T5Gemma2Config:
    both = {name: changes.pop(name) for name in ("vocab_size",) if name in changes}
    stacks = {"encoder": encoder(both | (text or {})), "decoder": STACK | both | (decoder or {})}
    return transformers.T5Gemma2Config(**stacks, **({"image_token_index": IMAGE} | changes))


def read(places: list[list[int]], padding: Padding = "right") -> dict[str, np.ndarray]:
    """Texts with images, after each of which stands its end."""
    images = sum(map(len, places))
    inputs = dict(texts(places, [4] * images, padding))
    ids = inputs["input_ids"]
    last = (ids[:, :-1] == IMAGE) & (ids[:, 1:] != IMAGE) & (ids[:, 1:] != 0)
    ids[:, 1:][last] = END
    pixels = floats("pixels", (images, 3, 16, 16), -2.0, 2.0)
    return inputs | {"pixel_values": pixels}


def alone(padding: Padding = "right") -> dict[str, np.ndarray]:
    batch = text_batch(IMAGE, (13, 9), padding, key="t5gemma2")
    batch["input_ids"][0, 6] = END
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def written(padding: Padding = "none") -> dict[str, np.ndarray]:
    batch = text_batch(IMAGE, (9, 9) if padding == "none" else (9, 6), padding, key="decoder")
    batch["input_ids"][0, 4] = END
    inputs = {"decoder_input_ids": batch["input_ids"]}
    return inputs if padding == "none" else inputs | {"decoder_attention_mask": batch["attention_mask"]}


def goldens() -> Iterator[Case]:
    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        return Case(f"t5gemma2/{name}", f"T5Gemma2{suffix}", config(**changes), inputs, notes)

    generation, images = "ForConditionalGeneration", read([[2], [0]])
    yield case("base", "Model", "Two texts with an image each; windows are shorter.", images | written())
    yield case("text-alone", "Model", "Two texts without images; an end of one all the same.", alone() | written())
    two = read([[1, 8], [2]], "left") | written("left")
    yield case("two-images", generation, "Two images in the first text; padding on the left of both texts.", two)
    odd = {"text": {"sliding_window": 5}, "decoder": {"sliding_window": 3, "num_key_value_heads": 4}}
    yield case("odd-window", generation, "Windows of odd length, other ones in the decoder.", alone() | written("right"), **odd)
    plain = {"final_logit_softcapping": None, "attention_bias": True, "layer_types": None, "sliding_window_pattern": 2}
    untied = {"text": plain, "decoder": plain, "tie_word_embeddings": False}
    yield case("untied", generation, "Embeddings and scores of their own, no soft caps, biases.", images | written(), **untied)
    unmasked = {name: x for name, x in alone().items() if name != "attention_mask"}
    yield case("without-mask", generation, "No masks.", unmasked | written())
    positions = {"position_ids": integers("positions", (2, 13), 0, 60), "decoder_position_ids": integers("more", (2, 9), 0, 60)}
    yield case("positions", "Model", "Positions as given.", alone() | written() | positions)
    for head in ("sequence", "token"):
        suffix = f"For{head.capitalize()}Classification"
        yield case(f"{head}-classification", suffix, "Three classes.", alone(), num_labels=3)
        yield case(f"{head}-classification-images", suffix, "Three classes, of images too.", images, num_labels=3)
    stored = case("file", generation, "model.safetensors as written.", images | written())
    yield Case(**{**stored.__dict__, "store": stores.whole})

    def half(name: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        stored = {"dropout_rate": 0.0}  # As configurations of both halves leave it there.
        chosen = transformers.T5Gemma2EncoderConfig(**encoder((changes.pop("text", None) or {}) | stored, **changes))
        return Case(f"t5gemma2_encoder/{name}", "T5Gemma2Encoder", chosen, inputs, notes)

    yield half("base", "Two texts with an image each.", images)
    yield half("text-alone", "Texts alone, padded on the left.", alone("left"))
    yield half("odd-window", "Windows of odd length; two images in a text.", read([[1, 8], [2]]), text={"sliding_window": 5})
    stored = half("file", "model.safetensors as written.", images)
    yield Case(**{**stored.__dict__, "store": stores.whole})
