"""T5: every head, both feed-forward kinds, distances beyond the last bucket, padding on either side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel, T5Config

from weft_reference import stores, weights
from weft_reference.cases import Case, Store
from weft_reference.inputs import Padding, integers, text_batch
from weft_reference.tasks import Call, TaskCase
from weft_reference.writing import text_to_text_goldens, unigram_tokenizer


def config(**changes: Any) -> T5Config:
    tiny = {
        "vocab_size": 40,
        "d_model": 16,
        "d_kv": 6,
        "d_ff": 24,
        "num_layers": 2,
        "num_heads": 3,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 10,
        "decoder_start_token_id": 0,
    }
    return T5Config(**(tiny | changes))


def encoder_text(padding: Padding = "right", lengths: tuple[int, ...] = (13, 9)) -> dict[str, np.ndarray]:
    batch = text_batch(40, lengths, padding)
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def decoder_text(
    lengths: tuple[int, ...] = (6, 6), padding: Padding = "none", key: str = "decoder", vocab_size: int = 40
) -> dict[str, np.ndarray]:
    batch = text_batch(vocab_size, lengths, padding, key=key)
    inputs = {"decoder_input_ids": batch["input_ids"]}
    inputs["decoder_input_ids"][:, 0] = 0
    if padding != "none":
        inputs["decoder_attention_mask"] = batch["attention_mask"]
    return inputs


def case(
    name: str, model_class: str, notes: str, inputs: dict[str, np.ndarray], store: Store | None = None, **changes: Any
) -> Case:
    return Case(f"t5/{name}", model_class, config(**changes), inputs, notes, store)


def own_scores(model: PreTrainedModel, folder: Path) -> None:
    """As published for version 1.1: scores of tokens have a table of their own, which release 5 leaves untied."""
    stores.whole(model, folder)
    tensors = load_file(folder / "model.safetensors")
    shape = tensors["shared.weight"].shape
    tensors["lm_head.weight"] = torch.from_numpy(weights.values("lm_head.weight", tuple(shape)).reshape(shape).copy())
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def goldens() -> Iterator[Case | TaskCase]:
    both = encoder_text() | decoder_text()
    yield case("base", "T5Model", "Text of two lengths; distances go beyond the last bucket.", both)
    yield case("conditional-generation", "T5ForConditionalGeneration", "Scores are scaled as embeddings are tied.", both)
    yield case(
        "exact-beyond-longest",
        "T5ForConditionalGeneration",
        "Half of the buckets are for single distances, more than the longest distance.",
        encoder_text() | decoder_text((23, 23)),
        relative_attention_num_buckets=32,
    )
    yield case(
        "v1-1",
        "T5ForConditionalGeneration",
        "A gated feed-forward; a table of its own is tied all the same, and scores are not scaled; more decoder layers.",
        both,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        num_decoder_layers=3,
    )
    yield case(
        "gated-silu",
        "T5ForConditionalGeneration",
        "Another activation; one bucket is wider than the text.",
        both,
        feed_forward_proj="gated-silu",
        relative_attention_num_buckets=32,
        relative_attention_max_distance=128,
    )
    yield case(
        "left-padding",
        "T5ForConditionalGeneration",
        "Padding on the left of what the encoder reads.",
        encoder_text("left") | decoder_text(),
    )
    yield case(
        "decoder-padding",
        "T5ForConditionalGeneration",
        "Padding on the right of what the decoder reads.",
        encoder_text() | decoder_text((6, 4), "right"),
    )
    yield case(
        "decoder-left-padding",
        "T5ForConditionalGeneration",
        "Padding on the left of what the decoder reads.",
        encoder_text() | decoder_text((6, 4), "left"),
    )
    yield case("encoder", "T5EncoderModel", "The encoder alone.", encoder_text(), num_layers=3)
    yield case("token-classification", "T5ForTokenClassification", "Three classes.", encoder_text(), num_labels=3)
    yield case(
        "question-answering",
        "T5ForQuestionAnswering",
        "The decoder reads the encoder's text, one to the right.",
        encoder_text(),
    )
    classified = encoder_text(lengths=(11, 8))
    ids = classified["input_ids"]
    ids[ids == 1] = 2
    ids[0, 10], ids[1, 7] = 1, 1
    yield case(
        "sequence-classification",
        "T5ForSequenceClassification",
        "The hidden state of the end token, at different places.",
        classified,
        num_labels=3,
    )
    yield case("file", "T5ForConditionalGeneration", "model.safetensors as written.", both, stores.whole)
    yield case(
        "bf16", "T5ForConditionalGeneration", "Weights in bfloat16, in shards.", both, stores.as_dtype(torch.bfloat16)
    )
    long = {"input_ids": integers("long", (2, 40), 5, 40), "decoder_input_ids": integers("long.decoder", (2, 30), 5, 40)}
    yield case("long", "T5ForConditionalGeneration", "Texts longer than the longest distance, without masks.", long)
    yield case(
        "file-own-scores",
        "T5ForConditionalGeneration",
        "Scores of tokens have a table of their own beside the embeddings.",
        both,
        own_scores,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    )
    yield from text_to_text_goldens("t5", "T5ForConditionalGeneration", config, num_layers=6)
    yield from classes()


def classes() -> Iterator[TaskCase]:
    """Texts and labels judged by the decoder's state at the last end token, of which each text or pair has one."""
    names = ["contradiction", "neutral", "entailment"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
    tokenizer = unigram_tokenizer("$A $B </s>")
    text, other = "My phone fell into the river on Sunday.", "The museum shows maps of the old town."
    for task, calls in (
        ("text-classification", (Call(text), Call([text, other], {"top_k": None}))),
        ("zero-shot-classification", (Call(text, {"candidate_labels": ["a letter", "cats, dogs and birds"]}),)),
    ):
        chosen = config(vocab_size=len(tokenizer), **labels)
        notes = "The state of a text's last end token."
        yield TaskCase(f"t5/tasks/{task}", task, "T5ForSequenceClassification", chosen, tokenizer, calls, notes)
