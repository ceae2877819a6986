"""mT5 and UMT5: every head, padding on either side, texts beyond the last bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import integers
from weft_reference.models import t5

TINY: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 24,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": 0,
}


def goldens() -> Iterator[Case]:
    for model, prefix in (("mt5", "MT5"), ("umt5", "UMT5")):
        yield from kin(model, prefix)


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = getattr(transformers, f"{prefix}Config")(**(TINY | changes))
        return Case(f"{model}/{name}", prefix + suffix, config, inputs, notes)

    writer = "ForConditionalGeneration"
    both = t5.encoder_text() | t5.decoder_text()
    yield case("base", "Model", "Text of two lengths; distances go beyond the last bucket.", both)
    yield case("conditional-generation", writer, "Gated feed-forward layers.", both)
    yield case("relu", writer, "Feed-forward layers without a gate.", both, feed_forward_proj="relu")
    left = t5.encoder_text("left") | t5.decoder_text((6, 4), "left")
    yield case("left-padding", writer, "Padding on the left of both texts.", left)
    yield case("encoder", "EncoderModel", "The encoder alone.", t5.encoder_text())
    yield case("token-classification", "ForTokenClassification", "Three classes.", t5.encoder_text(), num_labels=3)
    yield case("question-answering", "ForQuestionAnswering", "The decoder reads the text too.", t5.encoder_text())
    ended = t5.encoder_text(lengths=(11, 8))
    ids = ended["input_ids"]
    ids[ids == 1] = 2
    ids[0, 10], ids[1, 7] = 1, 1
    yield case("sequence-classification", "ForSequenceClassification", "The last end token's state.", ended, num_labels=3)
    long = {"input_ids": integers("long", (2, 40), 5, 40), "decoder_input_ids": integers("long.decoder", (2, 30), 5, 40)}
    yield case("long", writer, "Texts longer than the longest distance, without masks.", long)
