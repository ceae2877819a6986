"""Generation: logits processors, searches over a table of scores, stop strings, streams of text, drafters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from weft_reference.models.generation import drafted, processors, searches, stops
from weft_reference.models.generation.record import Record


def goldens() -> Iterator[Record]:
    yield Record("generation/processors.json", processors.cases)
    yield Record("generation/searches.json", searches.cases)
    yield Record("generation/byte-level/tokenizer.json", stops.byte_level_json)
    yield Record("generation/byte-fallback/tokenizer.json", stops.byte_fallback_json)
    yield Record("generation/word-piece/tokenizer.json", stops.word_piece_json)
    yield Record("generation/stops.json", stops.cases)
    for family in drafted.FAMILIES:
        for which, folder in enumerate(("target", "assistant")):
            for name in ("config.json", "model.safetensors"):
                path = f"generation/drafted/{family}/{folder}/{name}"
                yield Record(path, partial(drafted.stored, family, which, name))
        yield Record(f"generation/drafted/{family}/cases.json", partial(drafted.cases, family))
