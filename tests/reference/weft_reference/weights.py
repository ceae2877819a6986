"""The weight rule: every weight of a golden checkpoint, computed from its name and shape alone.

A golden case ships no weights. Python (here) and Rust (`weft::weights::rule`) both compute them by this
specification and must agree bit for bit; `tests/goldens/weight_rule.json` holds test vectors.

1. Bits. All arithmetic is on unsigned 64-bit integers and wraps.
       seed(name, salt) = fnv1a64(name in UTF-8) + salt              salt is 0 in goldens
       fnv1a64:   h = 0xcbf29ce484222325;  for each byte b:  h = (h xor b) * 0x100000001b3
       z(i) for the element at row-major index i = 0, 1, 2 ...:
           z = seed + (i + 1) * 0x9E3779B97F4A7C15
           z = (z xor (z >> 30)) * 0xBF58476D1CE4E5B9
           z = (z xor (z >> 27)) * 0x94D049BB133111EB
           z =  z xor (z >> 31)
   The name is the full tensor name with its case kept; a tensor without dimensions has one element.

2. Values. `f32(x)` rounds to the nearest float32, ties to even; the product and the sum are rounded
   separately (no fused multiply-add).
       normal(mean, std):   s = sum of the four 16-bit limbs of z, minus 131070     (exact, |s| <= 131070)
                            scale = f32(std / sqrt(1431655765.0))                   (float64 division and root)
                            value = f32(f32(s * scale) + f32(mean))
       uniform(low, high):  u = (z >> 40) * 2^-24                                   (exact, 0 <= u < 1)
                            value = f32(f32(u * f32(high - low)) + f32(low))        (high - low in float64)
   1431655765 = 4 * (65536^2 - 1) / 12 is the variance of s.

3. Distribution. Let `path` be "." followed by the name with A-Z lowered. `leaf` is the text after the last
   "." of `path`. `owner` is found by dropping a final segment "weight" if there is one, then a final segment
   made of the digits 0-9 only if there is one, and taking the last segment of what remains (the empty text if
   nothing remains). Examples: "h.0.wte.weight": leaf "weight", owner "wte"; "a.latents.3": leaf "3", owner
   "latents"; "x.bias": leaf "bias", owner "bias".
   The first row of `RULES` that matches decides. A row matches if
     - `field` (path, leaf or owner) matches one of its `patterns`: "*" may stand at the beginning and at the
       end of a pattern, never inside, and stands for any text including none; and
     - the number of dimensions is in `ndim` (both ends included); and
     - for `leading_one` rows only: the first dimension is 1 and the leaf is not "weight".
   The last rows match everything, so there always is one.

   `fan` rows are normal(0, std) with  std = sqrt(gain / max(fan, 1))  in float64, where fan is
     "rest": the product of all dimensions but the first;  "first": the first;  "last": the last.

4. What is filled. Every floating-point tensor of the checkpoint (`state_dict`): parameters first, in the
   order of `named_parameters()`, tied ones once under the name that checkpoints keep, then floating-point buffers.
   Integer buffers are not weights. Values are float32, rounded to the tensor's dtype where it is another.

The scales keep activations of trained-network size through a few layers for any architecture: unit gain
for projections, spread embeddings so that tokens differ, norms near one but not one, biases not zero.
Changing a row changes goldens of every model that has such a tensor: add rows above the catch-all rows
rather than changing one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import torch

ANY = (0, 99)
S_DEVIATION = math.sqrt(1431655765.0)
_U64 = np.uint64


@dataclass(frozen=True)
class Distribution:
    """normal: a = mean, b = standard deviation; uniform: a = low, b = high."""

    kind: Literal["normal", "uniform"]
    a: float
    b: float


@dataclass(frozen=True)
class Fan:
    """A normal distribution around zero whose deviation is sqrt(gain / fan)."""

    over: Literal["rest", "first", "last"]
    gain: float = 1.0


@dataclass(frozen=True)
class Row:
    field: Literal["path", "leaf", "owner"]
    patterns: tuple[str, ...]
    ndim: tuple[int, int]
    gives: Distribution | Fan
    leading_one: bool = False


def _normal(mean: float, std: float) -> Distribution:
    return Distribution("normal", mean, std)


def _uniform(low: float, high: float) -> Distribution:
    return Distribution("uniform", low, high)


NORM = _normal(1.0, 0.1)
BIAS = _normal(0.0, 0.05)
EMBEDDING = _normal(0.0, 0.5)

RULES: tuple[Row, ...] = (
    # Batch statistics; the magnitude half of weight normalization.
    Row("leaf", ("running_var",), ANY, _uniform(0.5, 1.5)),
    Row("leaf", ("running_mean",), ANY, _normal(0.0, 0.1)),
    Row("leaf", ("weight_g", "original0"), ANY, _uniform(0.5, 1.5)),
    # State-space models: decay, time step, skip connection.
    Row("leaf", ("a_log",), ANY, _uniform(0.0, 2.0)),
    Row("leaf", ("dt_bias",), ANY, _uniform(-4.0, -1.0)),
    Row("path", ("*.dt_proj.bias",), ANY, _uniform(-4.0, -1.0)),
    Row("leaf", ("d",), ANY, NORM),
    # Scalars (logit scales, gates) and norms.
    Row("leaf", ("*",), (0, 0), NORM),
    Row("leaf", ("weight",), (1, 1), NORM),
    # Tables of position biases, which are looked up like embeddings.
    Row("leaf", ("*relative_position_bias_table", "pos_bias_u", "pos_bias_v", "attention_biases"), (2, 99), EMBEDDING),
    Row("leaf", ("*bias*", "beta"), ANY, BIAS),
    # Per-channel scales of residual branches; differential attention's exponents.
    Row("leaf", ("*layer_scale*", "lambda", "lambda1", "lambda_1", "lambda_2", "gamma"), (1, 1), _normal(0.7, 0.1)),
    Row("leaf", ("lambda_q*", "lambda_k*"), (1, 1), _normal(0.0, 0.1)),
    # Looked-up tables and learned tokens.
    Row("owner", ("*embed*", "wte", "wpe", "shared", "*_token", "*_tokens", "latents", "queries"), (1, 3), EMBEDDING),
    Row("owner", ("*pos_embed*", "*position_embed*"), (4, 99), EMBEDDING),
    Row("owner", ("relative_attention_bias", "rel_pos_h", "rel_pos_w"), (2, 2), EMBEDDING),
    Row("leaf", ("*",), (3, 3), EMBEDDING, leading_one=True),
    # Projections: experts are [expert, out, in], GPT-2's Conv1D is [in, out], convolutions [out, in, kernel ...].
    Row("path", ("*experts*",), (3, 3), Fan("last")),
    Row("path", ("*c_attn.weight", "*c_fc.weight", "*c_proj.weight", "*q_attn.weight"), (2, 2), Fan("first")),
    Row("leaf", ("*",), (4, 4), Fan("rest", gain=2.0)),
    Row("leaf", ("*",), (2, 99), Fan("rest")),
    Row("leaf", ("*",), (1, 1), NORM),
)


def _ascii_lower(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def fields(name: str) -> dict[str, str]:
    """The three texts that patterns are matched with."""
    path = "." + _ascii_lower(name)
    segments = path.split(".")
    leaf = segments[-1]
    if segments[-1] == "weight":
        segments.pop()
    if segments and segments[-1] and all("0" <= c <= "9" for c in segments[-1]):
        segments.pop()
    return {"path": path, "leaf": leaf, "owner": segments[-1] if segments else ""}


def matches(pattern: str, text: str) -> bool:
    """Whether text fits a pattern with "*" at its ends only."""
    if pattern == "*":
        return True
    core = pattern.strip("*")
    begins, ends = pattern.startswith("*"), pattern.endswith("*")
    if begins and ends:
        return core in text
    if begins:
        return text.endswith(core)
    if ends:
        return text.startswith(core)
    return text == core


def distribution(name: str, shape: tuple[int, ...]) -> Distribution:
    """The distribution of the tensor `name`."""
    texts = fields(name)
    for row in RULES:
        if not row.ndim[0] <= len(shape) <= row.ndim[1]:
            continue
        if row.leading_one and (shape[0] != 1 or texts["leaf"] == "weight"):
            continue
        if not any(matches(pattern, texts[row.field]) for pattern in row.patterns):
            continue
        if isinstance(row.gives, Distribution):
            return row.gives
        fan = {"rest": math.prod(shape[1:]), "first": shape[0], "last": shape[-1]}[row.gives.over]
        return _normal(0.0, math.sqrt(row.gives.gain / max(fan, 1)))
    raise AssertionError("the last rows of RULES match every tensor")


def bits(name: str, count: int, salt: int = 0) -> np.ndarray:
    """z(0) ... z(count - 1)."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    start = _U64((seed + salt) & 0xFFFFFFFFFFFFFFFF)
    with np.errstate(over="ignore"):
        z = start + np.arange(1, count + 1, dtype=_U64) * _U64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> _U64(27))) * _U64(0x94D049BB133111EB)
        return z ^ (z >> _U64(31))


def values(name: str, shape: tuple[int, ...], salt: int = 0) -> np.ndarray:
    """The tensor `name`, float32."""
    chosen = distribution(name, shape)
    z = bits(name, math.prod(shape), salt)
    if chosen.kind == "normal":
        mask = _U64(0xFFFF)
        limbs = (z & mask) + ((z >> _U64(16)) & mask) + ((z >> _U64(32)) & mask) + (z >> _U64(48))
        s = (limbs.astype(np.int64) - 131070).astype(np.float32)
        flat = s * np.float32(chosen.b / S_DEVIATION) + np.float32(chosen.a)
    else:
        u = (z >> _U64(40)).astype(np.float32) * np.float32(2.0**-24)
        flat = u * np.float32(chosen.b - chosen.a) + np.float32(chosen.a)
    return flat.reshape(shape)


def fill(model: torch.nn.Module, salt: int = 0) -> dict[str, list[int]]:
    """Fills a model in place and returns the names and shapes that were filled, in order."""
    import torch

    filled: dict[str, list[int]] = {}
    kept = {target: source for target, source in getattr(model, "all_tied_weights_keys", {}).items()}
    tensors: dict[str, torch.Tensor] = {kept.get(name, name): tensor for name, tensor in model.named_parameters()}
    stored = set(model.state_dict())
    tensors.update((name, buffer) for name, buffer in model.named_buffers() if name in stored)
    with torch.no_grad():
        for name, tensor in tensors.items():
            if not tensor.is_floating_point():
                continue
            tensor.copy_(torch.from_numpy(values(name, tuple(tensor.shape), salt)).to(tensor.dtype))
            filled[name] = list(tensor.shape)
    return filled
