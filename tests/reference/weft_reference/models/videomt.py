"""VidEoMT: universal segmentation of videos, whose queries of a frame are made of those of the frame before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import transformers
from transformers import PreTrainedConfig
from transformers.utils import ModelOutput

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import eomt

MODELS = ("videomt",)
CLASS = "VideomtForUniversalSegmentation"
OF_VIDEO = transformers.VideomtForUniversalSegmentation.forward


def step(model: Any, pixel_values: torch.Tensor, propagated_query: torch.Tensor | None = None, return_dict: bool = True) -> ModelOutput:
    """One frame of each video: the reference's own forward pass of a video of one frame, whose queries have the frame before added."""
    count, last = model.config.num_queries, []
    first = model.layers[model.num_hidden_layers - model.config.num_blocks]

    def add(_: Any, arguments: Any) -> Any:
        queries, others = arguments[0].split([count, arguments[0].shape[1] - count], dim=1)
        return (torch.cat([propagated_query + queries, others], dim=1), *arguments[1:])

    hooks = [model.layers[-1].register_forward_hook(lambda _, __, output: last.append(output))]
    if propagated_query is not None:
        hooks.append(first.register_forward_pre_hook(add))
    found = OF_VIDEO(model, pixel_values_videos=pixel_values[:, None])
    for hook in hooks:
        hook.remove()
    return ModelOutput(found, propagated_query=model.query_updater(last[-1][:, :count]))


def checked(model: Any, pixel_values: torch.Tensor, **given: Any) -> ModelOutput:
    """The same, where steps give what the reference gives for the whole video."""
    frames = torch.stack([pixel_values, pixel_values.flip(0), pixel_values.flip(-1)], dim=1)
    whole, queries, steps = OF_VIDEO(model, pixel_values_videos=frames), None, []
    for index in range(frames.shape[1]):
        steps.append(step(model, frames[:, index], queries))
        queries = steps[-1].propagated_query
    for name in ("class_queries_logits", "masks_queries_logits", "last_hidden_state"):
        torch.testing.assert_close(torch.cat([one[name] for one in steps]), whole[name])
    return step(model, pixel_values, **given)


@contextmanager
def of_frames() -> Iterator[None]:
    with mock.patch.object(transformers.VideomtForUniversalSegmentation, "forward", checked):
        yield


def config(**changes: Any) -> PreTrainedConfig:
    return eomt.config("Videomt", **changes)


def case(path: str, notes: str, made: PreTrainedConfig, batch: int = 2, first: bool = False, store: Store | None = None) -> Case:
    given = {"pixel_values": floats(f"{path}.pixels", (batch, made.num_channels, made.image_size, made.image_size), -2.0, 2.0)}
    if not first:
        given["propagated_query"] = floats(f"{path}.queries", (batch, made.num_queries, made.hidden_size), -1.0, 1.0)
    return Case(path, CLASS, made, given, notes, store, within=of_frames)


def goldens() -> Iterator[Case]:
    def one(name: str, notes: str, first: bool = False, store: Store | None = None, batch: int = 2, **changes: Any) -> Case:
        return case(f"videomt/{name}", notes, config(**changes), batch, first, store)

    yield one("first", "The first frame of videos, whose queries are the learned ones.", first=True)
    yield one("next", "A frame behind another.")
    gated = {"use_swiglu_ffn": True, "hidden_act": "relu", "layer_norm_eps": 1e-3, "mlp_ratio": 3}
    yield one("gated", "Gated MLPs, one upsampling, a block for each layer; one video.", batch=1, num_blocks=4, num_upscale_blocks=1, **gated)
    yield one("one-block", "Queries in the last layer alone; four heads, other channels and patches.", num_blocks=1, num_attention_heads=4, num_channels=4, patch_size=4, num_register_tokens=1)
    yield one("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
