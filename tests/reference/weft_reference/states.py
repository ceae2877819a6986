"""What layers of fixed size leave in the cache after a text, in the axes that Weft's graphs give them: `{layer}.conv`
`[batch, kernel - 1, channels]` and `{layer}.recurrent` `[batch, heads, key, value]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

# States of a channel each, `[batch, channels, state]`, perhaps by heads.
SELECTIVE_SCAN = {"mamba", "falcon_mamba", "jamba", "zamba"}
# Those whose keys and values are the other way round.
TRANSPOSED = {"mamba2", "bamba", "falcon_h1", "granitemoehybrid", "nemotron_h", "zamba2"}
# Checkpoints have a convolution each for queries, keys and values.
SEPARATE = {"bailing_hybrid", "kimi_linear", "olmo_hybrid"}


def left(model: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The states after one forward call."""
    arguments = {name: torch.from_numpy(value) for name, value in inputs.items()}
    kind = model.config.model_type
    if kind == "xlstm":
        found = xlstm(model, arguments)
    elif kind == "recurrent_gemma":
        model(**arguments, use_cache=True)
        found = recurrent_gemma(model)
    elif kind == "rwkv":
        shorter = {name: value[:, :-1] for name, value in arguments.items()}
        found = rwkv(model, *(model(**given, use_cache=True, return_dict=True).state for given in (arguments, shorter)))
    elif kind == "minimax":
        linear = model(**arguments, use_cache=True, return_dict=True).past_key_values.linear_cache
        found = {f"{layer}.recurrent": state for layer, state in enumerate(linear) if isinstance(state, torch.Tensor)}
    else:
        result = model(**arguments, use_cache=True, return_dict=True)
        found = of_layers(model, result.get("past_key_values") or result["cache_params"])
    if not found:
        raise ValueError(f"{type(model).__name__} leaves no states")
    return {name: state.detach().float().contiguous().numpy() for name, state in found.items()}


def of_layers(model: Any, cache: Any) -> dict[str, torch.Tensor]:
    """Those of a cache whose layers keep them (`LinearAttentionLayer`)."""
    found = {}
    for index, layer in enumerate(cache.layers):
        convolution = getattr(layer, "conv_states", {}).get(0)
        recurrent = getattr(layer, "recurrent_states", {}).get(0)
        if convolution is not None:
            # The first of the kernel's positions is not read any more.
            found |= convolutions(model, index, convolution[..., 1:].transpose(1, 2))
        if recurrent is not None:
            found[f"{index}.recurrent"] = turned(recurrent, model.config.model_type)
    return found


def convolutions(model: Any, index: int, state: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a layer's convolution keeps, or those of its queries, keys and values, which the reference joins in memory."""
    if model.config.model_type not in SEPARATE:
        return {f"{index}.conv": state}
    layers = model.model.layers[index].modules()
    layer = next(module for module in layers if hasattr(module, "conv1d"))
    key = getattr(layer, "key_dim", None) or layer.qkv_dim
    parts = state.split([key, key, state.shape[-1] - 2 * key], dim=-1)
    return {f"{index}.{what}_conv": part for what, part in zip("qkv", parts, strict=True)}


def turned(state: torch.Tensor, kind: str) -> torch.Tensor:
    if kind in SELECTIVE_SCAN:
        return state.reshape(len(state), -1, state.shape[-1], 1)
    return state.transpose(-1, -2) if kind in TRANSPOSED else state


def recurrent_gemma(model: Any) -> dict[str, torch.Tensor]:
    """Those that its layers keep themselves."""
    found = {}
    for index, layer in enumerate(model.model.layers):
        block = layer.temporal_block
        if hasattr(block, "rg_lru"):
            found[f"{index}.conv"] = block.conv1d_state.transpose(1, 2)
            found[f"{index}.recurrent"] = block.rg_lru.recurrent_states[..., None, None]
    return found


def rwkv(model: Any, state: list[torch.Tensor], before: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Of the states of a text and of the text without its last token, `[batch, width, layers]` each: what layers saw last, the sums but for
    the last token, and what it adds to them. The reference's sums are by the exponential of the largest exponent."""
    found = {}
    for index, block in enumerate(model.rwkv.blocks if hasattr(model, "rwkv") else model.blocks):
        feed_forward, attention, *_ = (part[..., index] for part in state)
        [whole, older] = ([part[..., index] * it[4][..., index].exp() for part in it[2:4]] for it in (state, before))
        decay = torch.exp(-torch.exp(block.attention.time_decay))
        newest = [now - decay * then for now, then in zip(whole, older, strict=True)]
        found[f"{index}.feed_forward"] = feed_forward[:, None]
        found[f"{index}.attention"] = attention[:, None]
        found[f"{index}.newest"] = torch.stack(newest, -1).flatten(1)[:, None]
        found[f"{index}.recurrent"] = torch.stack(older, -1)[:, :, None]
    return found


def xlstm(model: Any, arguments: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Memories with their normalisers as one more value, without the exponential of the largest exponent that the reference divides by. Taken
    from its layers: its cache rounds widths up to multiples of 64, which no layer of it does."""
    kept = []
    layers = [module for name, module in model.named_modules() if name.endswith(".mlstm_layer")]
    hooks = [layer.register_forward_hook(lambda _layer, _given, output: kept.append(output[1])) for layer in layers]
    model(**arguments, use_cache=False)
    for hook in hooks:
        hook.remove()
    found = {}
    for index, (memory, normalizer, largest) in enumerate(kept):
        whole = torch.cat([memory, normalizer[..., None]], -1)
        found[f"{index}.recurrent"] = whole * largest[..., None].exp()
        found[f"{index}.largest"] = largest.transpose(1, 2)
    return found
