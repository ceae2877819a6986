"""The ways a checkpoint's weights lie on disk."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.cases import Store, ruled_model, save_config


def whole(model: PreTrainedModel, folder: Path) -> None:
    """One `model.safetensors`."""
    model.save_pretrained(folder)


def sharded(shard_size: str) -> Store:
    """Several files and `model.safetensors.index.json`."""

    def store(model: PreTrainedModel, folder: Path) -> None:
        model.save_pretrained(folder, max_shard_size=shard_size)

    return store


def as_dtype(dtype: torch.dtype) -> Store:
    """Weights rounded to a narrower type; the reference computes in float32 from the rounded weights."""

    def store(model: PreTrainedModel, folder: Path) -> None:
        model.to(dtype).save_pretrained(folder)

    return store


def renamed(replace: dict[str, str]) -> Store:
    """Tensors under the names of older checkpoints: each key at the end of a name becomes its value."""

    def store(model: PreTrainedModel, folder: Path) -> None:
        model.save_pretrained(folder)
        path = folder / "model.safetensors"
        tensors = load_file(path)
        for old, new in replace.items():
            tensors = {
                (name[: -len(old)] + new if name.endswith(old) else name): tensor for name, tensor in tensors.items()
            }
        save_file(dict(sorted(tensors.items())), path, metadata={"format": "pt"})

    return store


def timm_network(folder: Path) -> None:
    """Gives the network of a stored detector timm's names, as published checkpoints have them."""
    path = folder / "model.safetensors"
    pieces = [
        (r"\.embedder\.embedder\.convolution\.", ".conv1."),
        (r"\.embedder\.embedder\.normalization\.", ".bn1."),
        (r"\.encoder\.stages\.(\d)\.layers\.", lambda found: f".layer{int(found[1]) + 1}."),
        (r"\.shortcut\.convolution\.", ".downsample.0."),
        (r"\.shortcut\.normalization\.", ".downsample.1."),
        (r"\.layer\.(\d)\.convolution\.", lambda found: f".conv{int(found[1]) + 1}."),
        (r"\.layer\.(\d)\.normalization\.", lambda found: f".bn{int(found[1]) + 1}."),
    ]
    tensors = {}
    for name, tensor in load_file(path).items():
        if ".backbone." in name:
            for piece, other in pieces:
                name = re.sub(piece, other, name)
        tensors[name] = tensor
    save_file(dict(sorted(tensors.items())), path, metadata={"format": "pt"})


def from_head(head_class: str) -> Store:
    """The base model inside a head's checkpoint, so that its tensors carry the base model's prefix."""

    def store(model: PreTrainedModel, folder: Path) -> None:
        head, _ = ruled_model(head_class, model.config)
        head.save_pretrained(folder)
        save_config(model, folder)

    return store


def from_whole(whole_class: str, config: PreTrainedConfig) -> Store:
    """A tower inside the model of both, whose configuration holds the tower's."""

    def store(_model: PreTrainedModel, folder: Path) -> None:
        whole, _ = ruled_model(whole_class, config)
        whole.save_pretrained(folder)

    return store
