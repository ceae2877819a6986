"""ViLT: a text and an image in one transformer, images of several sizes padded to one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, floats, text_batch
from weft_reference.vision_tasks import VisionTaskCase, image_questions, image_scores

TINY: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 20,
    "image_size": 24,
    "patch_size": 8,
}
HEADS = (
    "Model",
    "ForMaskedLM",
    "ForQuestionAnswering",
    "ForImageAndTextRetrieval",
    "ForImagesAndTextClassification",
    "ForTokenClassification",
)
SIZES = ((32, 40), (24, 16))


def config(**changes: Any) -> transformers.ViltConfig:
    return transformers.ViltConfig(**TINY | changes)


def images(chosen: Any, key: str, sizes: tuple[tuple[int, int], ...]) -> dict[str, np.ndarray]:
    """An image of each size, padded to the largest."""
    height, width = (max(size[axis] for size in sizes) for axis in range(2))
    pixels = floats(f"{key}.pixels", (len(sizes), chosen.num_channels, height, width), -2.0, 2.0)
    mask = np.zeros((len(sizes), height, width), np.int64)
    for row, (high, wide) in enumerate(sizes):
        mask[row, :high, :wide] = 1
        pixels[row] *= mask[row]
    return {"pixel_values": pixels, "pixel_mask": mask}


def inputs(
    chosen: Any, key: str, head: str, sizes: tuple[tuple[int, int], ...] = SIZES, lengths: tuple[int, ...] = (9, 6), padding: Padding = "right"
) -> dict[str, np.ndarray]:
    made = text_batch(chosen.vocab_size, lengths, padding, min(2, chosen.type_vocab_size), 0, key)
    if head == "ForImagesAndTextClassification":
        each = [images(chosen, f"{key}.{index}", sizes[index:] + sizes[:index]) for index in range(chosen.num_images)]
        return made | {name: np.stack([one[name] for one in each], axis=1) for name in each[0]}
    return made | images(chosen, key, sizes)


def of(path: str, head: str, notes: str, chosen: Any, given: dict[str, np.ndarray], store: Store | None = None) -> Case:
    # The reference has patches in an order drawn at random, and no more of them than the largest image.
    return Case(path, f"Vilt{head}", chosen, given, notes, store, without=("last_hidden_state",) if head == "Model" else ())


def case(name: str, head: str, notes: str, store: Store | None = None, sizes: tuple[tuple[int, int], ...] = SIZES, bare: bool = False, **changes: Any) -> Case:
    chosen = config(**changes)
    given = inputs(chosen, name, head, sizes)
    if bare:
        given = {name: given[name] for name in ("input_ids", "pixel_values")}
        # The mask that the reference makes itself is of `image_size`.
    return of(f"vilt/{name}", head, notes, chosen, given, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", "Images of two sizes, one padded; texts as well.")
    yield case("bare", "Model", "No masks, images of the trained size.", sizes=((24, 24), (24, 24)), bare=True)
    yield case("masked-lm", "ForMaskedLM", "Images of two sizes, biases in all projections.")
    yield case("one-row", "ForMaskedLM", "An image of one row of patches; other functions, no biases.", sizes=((8, 40), (8, 16)), hidden_act="relu", qkv_bias=False, layer_norm_eps=0.01)
    yield case("seven", "ForMaskedLM", "Six patches of seven pixels, the third of which ends at padding.", sizes=((42, 42), (42, 21)), patch_size=7, image_size=32)
    yield case("question-answering", "ForQuestionAnswering", "Seven answers.", num_labels=7)
    yield case("retrieval", "ForImageAndTextRetrieval", "A score for each pair.")
    yield case("two-images", "ForImagesAndTextClassification", "Two images of each text.", num_images=2, modality_type_vocab_size=3)
    yield case("token-classification", "ForTokenClassification", "Three classes.", num_labels=3)
    yield case("file", "ForMaskedLM", "model.safetensors as save_pretrained writes it.", stores.whole)
    processor = transformers.ViltImageProcessorPil(size={"shortest_edge": 24}, size_divisor=8)
    names = ("cloth", "a loom", "yes", "no", "two", "the weaver", "blue")
    asked = config(vocab_size=image_questions.BEGIN, id2label=dict(enumerate(names)))
    made = image_questions.tokenizer(asked.max_position_embeddings)
    yield from image_questions.visual_question_answering("vilt", "ViltForQuestionAnswering", asked, processor, made, {"top_k": 2})
    matched = config(vocab_size=image_questions.BEGIN)
    yield image_scores.image_text_matching("vilt", "ViltForImageAndTextRetrieval", matched, processor, made)


def random_case(rng: Random, path: str) -> Case:
    heads, head = rng.choice((1, 2, 3)), rng.choice(HEADS)
    patch = rng.randint(2, 8)
    chosen = config(
        vocab_size=rng.randint(30, 200),
        hidden_size=heads * rng.randint(3, 12),
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.randint(8, 60),
        max_position_embeddings=rng.randint(20, 40),
        type_vocab_size=rng.randint(1, 3),
        modality_type_vocab_size=rng.randint(3, 4),
        hidden_act=rng.choice(("gelu", "relu", "gelu_new")),
        qkv_bias=rng.random() < 0.5,
        patch_size=patch,
        image_size=patch * rng.randint(1, 5) + rng.randrange(patch),
        num_images=2 if head == "ForImagesAndTextClassification" else -1,
        **({"num_labels": rng.randint(1, 6)} if head.endswith(("Answering", "Classification")) else {}),
    )
    lengths = tuple(sorted((rng.randint(1, 20) for _ in range(rng.randint(1, 4))), reverse=True))
    sizes = tuple((patch * rng.randint(1, 6), patch * rng.randint(1, 6)) for _ in lengths)
    return of(path, head, "Drawn at random.", chosen, inputs(chosen, path, head, sizes, lengths, rng.choice(("right", "left"))), stores.whole)
