"""Pop2Piano: T5 from features of sound, padded on either side, with plain and gated feed-forward layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference.cases import Case
from weft_reference.inputs import floats
from weft_reference.models import t5
from weft_reference.models.t5_kin import TINY


def case(path: str, notes: str, side: str, **changes: Any) -> Case:
    config = transformers.Pop2PianoConfig(**(TINY | changes))
    text = t5.encoder_text(side)
    shape = (*text["attention_mask"].shape, config.d_model)
    inputs = {"input_features": floats(f"{path}.mel", shape), "attention_mask": text["attention_mask"]}
    return Case(path, "Pop2PianoForConditionalGeneration", config, inputs | t5.decoder_text((6, 4), side), notes)


def goldens() -> Iterator[Case]:
    yield case("pop2piano/base", "Gated layers; padding on the right.", "right")
    plain = {"feed_forward_proj": "relu", "dense_act_fn": "gelu", "num_decoder_layers": None, "tie_word_embeddings": False}
    yield case("pop2piano/plain", "Plain layers, hidden states as they are; padding on the left.", "left", **plain)
