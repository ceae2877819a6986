"""Decoders: every head of each, what its configuration varies in, and what the pipeline of a few writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import transformers

from weft_reference.cases import Case
from weft_reference.models.decoders import classic, hybrids, latent, mixtures, quantized, recurrent, rotary, streams
from weft_reference.models.decoders.family import Changes, Decoder, cases
from weft_reference.models.decoders.relatives import relatives
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_generation_goldens

__all__ = ["DECODERS", "MODELS", "goldens"]

TABLES: tuple[Decoder, ...] = (
    *rotary.DECODERS,
    *classic.DECODERS,
    *mixtures.DECODERS,
    *latent.DECODERS,
    *recurrent.DECODERS,
    *hybrids.DECODERS,
    *streams.DECODERS,
)
# Those of `models/gemma4.py` and `models/embedding_gemma2.py`.
ELSEWHERE = {"gemma4_text", "gemma4_unified_text", "embedding_gemma2_text"}
RELATIVES = relatives({decoder.model for decoder in TABLES} | ELSEWHERE)
DECODERS = (*TABLES, *RELATIVES)
MODELS = tuple(decoder.model for decoder in DECODERS)
# Those whose pipeline answers too: grouped heads, windows, biases, learned positions, positions from 2.
DEEPER: Changes = {"num_hidden_layers": 4, "max_position_embeddings": 128}
WRITERS: dict[str, Changes] = {
    "llama": DEEPER,
    "qwen2": DEEPER,
    "gpt2": {"n_layer": 4, "n_positions": 128},
    "opt": DEEPER,
    "lfm2": DEEPER | {"layer_types": ["conv", "full_attention", "conv", "full_attention"]},
    "mamba": {"num_hidden_layers": 4},
    "zamba2": {"max_position_embeddings": 128},
} | {decoder.model: DEEPER for decoder in RELATIVES}


def goldens() -> Iterator[Case | TaskCase]:
    for decoder in DECODERS:
        yield from cases(decoder)
        if decoder.model in WRITERS:
            config_class = getattr(transformers, f"{decoder.config or decoder.prefix}Config")
            config = partial(config_class, **(decoder.base | decoder.changes | WRITERS[decoder.model]))
            yield from text_generation_goldens(decoder.model, decoder.prefix + decoder.heads["causal-lm"], config)
    yield from quantized.goldens()
