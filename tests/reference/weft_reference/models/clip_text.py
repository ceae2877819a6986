"""CLIP's text model: which token ends a text, masks and positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from transformers import CLIPTextConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import text_batch

BEGIN, END = 97, 98


def sizes(**changes: Any) -> dict[str, Any]:
    tiny = {
        "vocab_size": 99,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "projection_dim": 12,
        "max_position_embeddings": 20,
        "bos_token_id": BEGIN,
        "eos_token_id": END,
    }
    return tiny | changes


def texts(
    lengths: tuple[int, ...] = (9, 6), padding: str = "right", pad: int = 1, key: str = "clip"
) -> dict[str, np.ndarray]:
    """Texts with a beginning, an end, and padding behind or before."""
    batch = text_batch(BEGIN, lengths, padding, pad=pad, key=key)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    for row in range(len(lengths)):
        seen = np.flatnonzero(mask[row])
        ids[row, seen[0]], ids[row, seen[-1]] = BEGIN, END
    return {"input_ids": ids, "attention_mask": mask}


def case(
    name: str, head: str, notes: str, inputs: Inputs | None = None, store: Store | None = None, **changes: Any
) -> Case:
    return Case(
        f"clip-text/{name}", f"CLIPTextModel{head}", CLIPTextConfig(**sizes(**changes)), inputs or texts(), notes, store
    )


def goldens() -> Iterator[Case]:
    yield case("base", "", "Two texts, the second padded on the right.")
    yield case(
        "end-is-padding", "", "Padding is the end token too: the first one counts; no mask.", {"input_ids": texts(pad=END)["input_ids"]}
    )
    yield case("end-by-largest-id", "", "eos_token_id 2, as in old configurations: the largest id ends a text.", eos_token_id=2)
    yield case("left-padding", "", "The second text is padded on the left.", texts(padding="left"))
    positions = np.stack([np.arange(9)[::-1], np.arange(11, 20)]).astype(np.int64)
    yield case("position-ids", "", "Positions given, backwards and shifted.", texts() | {"position_ids": positions})
    yield case("projection", "WithProjection", "The vector in the shared space.", hidden_act="gelu", layer_norm_eps=0.1)
    yield case(
        "file",
        "WithProjection",
        "model.safetensors as save_pretrained writes it.",
        store=stores.whole,
        num_hidden_layers=1,
    )
    yield case(
        "file-prefixed-base",
        "",
        "The base model read from a head's checkpoint: names begin with text_model.",
        store=stores.from_head("CLIPTextModelWithProjection"),
        num_hidden_layers=1,
    )
