"""ProphetNet: streams of several tokens, padding, positions far apart, texts written.

Of several positions the reference reads its scores of relative positions in another order than it writes them, so that with
several heads or streams its steps are not the whole: what is compared step by step has one head and one stream, or one position.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import text_batch
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_to_text_goldens

WRITER = "ProphetNetForConditionalGeneration"
TINY: dict[str, Any] = {
    "vocab_size": 43,
    "hidden_size": 16,
    "num_encoder_layers": 3,
    "num_encoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "num_decoder_layers": 3,
    "num_decoder_attention_heads": 2,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 32,
    "num_buckets": 8,
    "relative_max_distance": 10,
}
ALONE = {"ngram": 1, "num_decoder_attention_heads": 1}


def texts(length: int = 6, padded: bool = False) -> dict[str, Any]:
    read, written = text_batch(43, (13, 9)), text_batch(43, (length, length - 2 * padded), key="decoder")
    given = {name: read[name] for name in ("input_ids", "attention_mask")}
    given["decoder_input_ids"] = written["input_ids"]
    if padded:
        given["decoder_attention_mask"] = written["attention_mask"]
    return given


def config(**changes: Any) -> transformers.ProphetNetConfig:
    return transformers.ProphetNetConfig(**(TINY | changes))


def goldens() -> Iterator[Case | TaskCase]:
    def case(name: str, model_class: str, notes: str, inputs: Any, store: Any = None, **changes: Any) -> Case:
        return Case(f"prophetnet/{name}", model_class, config(**changes), inputs, notes, store)

    yield case("base", "ProphetNetModel", "Two texts, the second padded; two streams.", texts(padded=True))
    yield case("streams", "ProphetNetModel", "Four streams, positions beyond the last bucket.", texts(19), ngram=4)
    yield case("conditional-generation", WRITER, "One stream and one head, whose steps are the whole.", texts(9), **ALONE)
    padded = texts(7, padded=True)
    yield case("untied", WRITER, "Tables of their own.", padded, tie_word_embeddings=False, activation_function="relu", **ALONE)
    yield case("first-token", WRITER, "Three streams at one position.", texts(1), ngram=3)
    yield case("file", WRITER, "model.safetensors as save_pretrained writes it.", texts(1), store=stores.whole)

    def sized(vocab_size: int, **changes: Any) -> transformers.ProphetNetConfig:
        ids = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "max_position_embeddings": 128}
        return config(**(ids | {"vocab_size": vocab_size} | changes))

    yield from text_to_text_goldens("prophetnet", WRITER, sized, num_encoder_layers=4, num_decoder_layers=4)
