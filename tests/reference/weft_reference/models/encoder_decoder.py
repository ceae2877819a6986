"""Encoder Decoder: BERT, RoBERTa and BertGeneration on either side, widths that differ, padding on either side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.models import t5
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_to_text_goldens

STACK: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}
CLASSES = {
    "bert": transformers.BertConfig,
    "roberta": transformers.RobertaConfig,
    "bert-generation": transformers.BertGenerationConfig,
}
PADDED = {"roberta": {"pad_token_id": 0, "type_vocab_size": 1}}


def config(
    encoder: str = "bert",
    decoder: str = "bert",
    encoder_changes: dict[str, Any] | None = None,
    decoder_changes: dict[str, Any] | None = None,
    **changes: Any,
) -> transformers.EncoderDecoderConfig:
    both = {name: changes.pop(name) for name in ("vocab_size", "num_hidden_layers") if name in changes}
    stacks = []
    for name, more in ((encoder, encoder_changes), (decoder, decoder_changes)):
        stacks.append(CLASSES[name](**(STACK | PADDED.get(name, {}) | both | (more or {}))))
    ids = {"decoder_start_token_id": 3, "pad_token_id": 0}
    return transformers.EncoderDecoderConfig.from_encoder_decoder_configs(*stacks, **(ids | changes))


def begun(inputs: dict[str, Any]) -> dict[str, Any]:
    """The first token is no padding: RoBERTa would count it in a step, and not in a whole text."""
    ids = inputs["decoder_input_ids"]
    ids[:, 0] = np.where(inputs.get("decoder_attention_mask", ids * 0 + 1)[:, 0] == 1, 3, 0)
    return inputs


def goldens() -> Iterator[Case | TaskCase]:
    both = t5.encoder_text() | begun(t5.decoder_text((9, 9)))

    def case(name: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        return Case(f"encoder-decoder/{name}", "EncoderDecoderModel", config(**changes), inputs, notes)

    yield case("bert", "BERT to BERT; texts of two lengths.", both)
    wider = {"hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 43, "intermediate_size": 12, "hidden_act": "relu"}
    yield case("projected", "Another width and vocabulary on either side.", both, encoder_changes=wider)
    generation = {"encoder": "bert-generation", "decoder": "bert-generation"}
    yield case("bert-generation", "Without token types.", both, **generation)
    yield case("untied", "Scores of tokens of their own.", both, decoder_changes={"tie_word_embeddings": False})
    roberta = {"encoder": "roberta", "decoder": "roberta"}
    left = t5.encoder_text("left") | begun(t5.decoder_text((9, 6), "left"))
    yield case("roberta", "RoBERTa to RoBERTa, whose positions skip padding, which is on the left.", left, **roberta)
    right = t5.encoder_text() | begun(t5.decoder_text((9, 6), "right"))
    yield case("mixed", "BERT to RoBERTa; padding on the right of both texts.", right, decoder="roberta")
    yield case("bert-left-padding", "RoBERTa to BERT; padding on the left of both texts.", left, encoder="roberta")
    yield case("without-mask", "No masks.", {name: x for name, x in both.items() if not name.endswith("mask")})
    stored = case("file", "model.safetensors as written.", both, **roberta)
    yield Case(**{**stored.__dict__, "store": stores.whole})
    for task in text_to_text_goldens("encoder-decoder", "EncoderDecoderModel", sized):
        if task.task != "translation":
            yield task


def sized(vocab_size: int, **changes: Any) -> transformers.EncoderDecoderConfig:
    longer = {"max_position_embeddings": 96}
    return config(vocab_size=vocab_size, encoder_changes=longer, decoder_changes=longer, num_hidden_layers=3, **changes)
