"""Low-rank updates (LoRA) under the names of kohya-ss, added to weights by hand: of linear layers and of a convolution."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from weft_reference.inputs import floats

BLOCK = "down_blocks.0.attentions.0.transformer_blocks.0"
UPDATED = {
    "unet": (f"{BLOCK}.attn1.to_q", f"{BLOCK}.attn2.to_out.0", f"{BLOCK}.ff.net.0.proj", "mid_block.resnets.0.conv1"),
    "text_encoder": ("encoder.layers.0.self_attn.q_proj", "encoder.layers.1.mlp.fc2"),
}
PREFIXES = {"unet": "lora_unet", "text_encoder": "lora_te_text_model"}
RANK = 3


@contextmanager
def merged(pipeline: Any, scale: float | None) -> Iterator[dict[str, np.ndarray]]:
    """The tensors of a file with updates, which the pipeline has meanwhile; none where there is no scale."""
    tensors: dict[str, np.ndarray] = {}
    before: list[tuple[torch.Tensor, torch.Tensor]] = []
    for component, names in UPDATED.items() if scale else ():
        for index, name in enumerate(names):
            weight = getattr(pipeline, component).get_submodule(name).weight.data
            rows, *rest = weight.shape
            stem = f"{PREFIXES[component]}_{name.replace('.', '_')}"
            down = torch.from_numpy(floats(f"{stem}.down", (RANK, *rest)))
            up = torch.from_numpy(floats(f"{stem}.up", (rows, RANK, *(1 for _ in rest[1:]))))
            alpha = torch.tensor(1.0 + index)
            tensors |= {f"{stem}.lora_down.weight": down.numpy(), f"{stem}.lora_up.weight": up.numpy()}
            tensors[f"{stem}.alpha"] = alpha.numpy()
            before.append((weight, weight.clone()))
            product = up.reshape(rows, RANK) @ down.reshape(RANK, -1)
            weight += scale * alpha / RANK * product.reshape(weight.shape)
    yield tensors
    for weight, old in before:
        weight.copy_(old)
