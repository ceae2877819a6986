"""SigLIP's text model: sees both sides, and takes the last position's state whatever stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import SiglipTextConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import text_batch

END = 1


def sizes(**changes: Any) -> dict[str, Any]:
    tiny = {
        "vocab_size": 99,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 20,
        "pad_token_id": END,
        "bos_token_id": 0,
        "eos_token_id": END,
    }
    return tiny | changes


def texts(lengths: tuple[int, ...] = (9, 6), padding: str = "right", key: str = "siglip") -> dict[str, np.ndarray]:
    """Texts with an end, which is padding too."""
    batch = text_batch(99, lengths, padding, pad=END, key=key)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    for row in range(len(lengths)):
        ids[row, np.flatnonzero(mask[row])[-1]] = END
    return {"input_ids": ids, "attention_mask": mask}


def case(name: str, notes: str, inputs: Inputs | None = None, store: Store | None = None, **changes: Any) -> Case:
    chosen = SiglipTextConfig(**sizes(**changes))
    return Case(f"siglip-text/{name}", "SiglipTextModel", chosen, inputs or texts(), notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Two texts, the second padded; padding is hidden, and the last of it is the vector.")
    yield case("padding-seen", "As the tokenizer gives them: no mask.", {"input_ids": texts()["input_ids"]})
    yield case("left-padding", "The second text is padded on the left.", texts(padding="left"))
    positions = np.stack([np.arange(9)[::-1], np.arange(11, 20)]).astype(np.int64)
    yield case("position-ids", "Positions given, backwards and shifted.", texts() | {"position_ids": positions})
    yield case(
        "projection-size",
        "The vector is wider than the states; other functions.",
        projection_size=20,
        hidden_act="relu",
        layer_norm_eps=0.1,
    )
    yield case("file", "model.safetensors as save_pretrained writes it.", store=stores.whole, num_hidden_layers=1)
