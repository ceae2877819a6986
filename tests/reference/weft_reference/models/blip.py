"""BLIP: captions, and whether a text is about an image; texts padded on either side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from transformers import BlipConfig, BlipImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import Padding, floats, text_batch
from weft_reference.vision_tasks import VisionTaskCase, image_questions, image_scores

VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 12,
    "patch_size": 4,
}
TEXT: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
}


def case(
    name: str,
    head: str,
    notes: str,
    padding: Padding = "right",
    store: Any = None,
    vision: dict[str, Any] | None = None,
    **text: Any,
) -> Case:
    chosen = BlipConfig(vision_config=VISION | (vision or {}), text_config=TEXT | text, image_text_hidden_size=10)
    size = chosen.vision_config.image_size
    inputs = {"pixel_values": floats(f"pixels.{name}", (2, 3, size, size), -2.0, 2.0)}
    inputs |= text_batch(40, (9, 6), padding)
    del inputs["token_type_ids"]
    return Case(f"blip/{name}", f"BlipFor{head}", chosen, inputs, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("captioning", "ConditionalGeneration", "Two images with a beginning of a caption each.")
    yield case("left-padding", "ConditionalGeneration", "Texts padded on the left.", "left")
    yield case("matching", "ImageTextRetrieval", "Whether two texts are about two images.")
    relu = {"hidden_act": "relu", "layer_norm_eps": 1e-3}
    yield case("relu", "ImageTextRetrieval", "Other activation functions and epsilons.", "left", vision=relu, **relu)
    yield case("file", "ConditionalGeneration", "model.safetensors as written.", store=stores.whole)
    yield case("matching-file", "ImageTextRetrieval", "model.safetensors as written.", store=stores.whole)
    yield answering("answering", "Two images with a question each, padded on the right, and the beginning of an answer.")
    yield answering("answering-left", "Questions padded on the left.", "left")
    ids = {"bos_token_id": image_questions.BEGIN, "sep_token_id": image_questions.SEP, "pad_token_id": image_questions.PAD}
    read = BlipConfig(vision_config=VISION, text_config=TEXT | ids | {"vocab_size": image_questions.BEGIN + 1}, image_text_hidden_size=10)
    processor = BlipImageProcessorPil(size={"height": 12, "width": 12})
    made = image_questions.tokenizer(40, begin=True)
    yield image_questions.image_to_text("blip", "BlipForConditionalGeneration", read, processor, made, prompted=True)
    yield image_scores.image_text_matching("blip", "BlipForImageTextRetrieval", read, processor, made)
    longer = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 5}
    read = BlipConfig(**read.to_dict() | {"vision_config": VISION | {"hidden_size": 24}})
    yield from image_questions.visual_question_answering("blip", "BlipForQuestionAnswering", read, processor, made, longer)


def answering(name: str, notes: str, padding: Padding = "right") -> Case:
    """The reference gives no logits of answers but to training; tasks compare what it generates."""
    # The decoder attends to questions by weights of the vision model's width.
    made = case(name, "QuestionAnswering", notes, padding, vision={"hidden_size": 24, "num_attention_heads": 4})
    answer = text_batch(40, (5, 3), "right", key="answer")
    inputs = {f"decoder_{key}": value for key, value in answer.items() if key != "token_type_ids"}
    return replace(made, inputs={**made.inputs, **inputs})


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers and heads of both models."""
    sizes = [{"num_attention_heads": heads, "hidden_size": heads * 8, "num_hidden_layers": rng.randint(1, 3)} for heads in rng.choices((1, 2, 4), k=2)]
    head = rng.choice(("ConditionalGeneration", "ImageTextRetrieval"))
    patches = {"image_size": rng.choice((8, 16)), "patch_size": rng.choice((2, 4))}
    drawn = case("random", head, "Drawn at random.", rng.choice(("left", "right")), stores.whole, sizes[0] | patches, **sizes[1])
    return replace(drawn, path=path)


DRAWN = {"blip": random_case}
