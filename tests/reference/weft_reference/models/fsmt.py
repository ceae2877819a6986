"""FSMT: two vocabularies, padding on either side, positions stored and computed, a translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.models import bart
from weft_reference.models.bart import read, written
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_to_text_goldens

WRITER = "FSMTForConditionalGeneration"
# With a cache the reference masks nothing, as a step has one token.
WHOLE = {"use_cache": False}


def config(**changes: Any) -> transformers.FSMTConfig:
    tiny = {name: value for name, value in bart.TINY.items() if name != "vocab_size"}
    return transformers.FSMTConfig(**(tiny | {"src_vocab_size": 43, "tgt_vocab_size": 47} | changes))


def without_positions(model: PreTrainedModel, folder: Path) -> None:
    """As published: positions are made when the model is opened."""
    for side in (model.model.encoder, model.model.decoder):
        table = side.embed_positions
        table.weight.data.copy_(table.get_embedding(*table.weight.shape, table.padding_idx))
    stores.whole(model, folder)
    tensors = {name: x for name, x in load_file(folder / "model.safetensors").items() if "embed_positions" not in name}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def goldens() -> Iterator[Case | TaskCase]:
    both = read() | written()

    def case(name: str, model_class: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        return Case(f"fsmt/{name}", model_class, config(**changes), inputs, notes, forward=WHOLE)

    yield case("base", "FSMTModel", "Two texts, the second padded on the right.", both)
    yield case("conditional-generation", WRITER, "Scores of tokens.", both)
    left = read("left") | written((6, 4), "right")
    yield case("left-padding", WRITER, "Padding on the left, and in what is written.", left)
    tied = {"tie_word_embeddings": True, "tgt_vocab_size": 43, "scale_embedding": False}
    yield case("tied", WRITER, "One table for all; unscaled embeddings.", both, **tied)
    stored = case("file-without-positions", WRITER, "Without positions, which are waves.", both)
    yield replace(stored, store=without_positions, computed="embed_positions.weight")

    def sized(vocab_size: int, **changes: Any) -> transformers.FSMTConfig:
        ids = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "max_position_embeddings": 128}
        return config(**(ids | {"src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size} | changes))

    for task in text_to_text_goldens("fsmt", WRITER, sized, decoder_layers=4):
        if task.task == "translation":
            yield task
