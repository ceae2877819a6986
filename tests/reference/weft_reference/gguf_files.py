"""GGUF files as llama.cpp's `convert_hf_to_gguf.py` and `llama-quantize` write them, and the weights that they then hold.

Needs the package `gguf`, which is no requirement of anything else here. Tensors of the k-quants, which it cannot make, are
drawn block by block.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from weft_reference import weights
from weft_reference.cases import Inputs, loaded, rewrite, ruled_model, run, versions
from weft_reference.files import Files, to_json, to_safetensors

Array = np.ndarray
# The places of each block's scales, half precision, for types that are drawn; MXFP4's is an exponent.
HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,)}


class Change(NamedTuple):
    """What the converter does to a tensor, and its inverse."""

    there: Callable[[Array, Any], Array]
    back: Callable[[Array, Any], Array]


def _rotary(heads: Callable[[Any], int]) -> Change:
    def there(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), 2, w.shape[0] // heads(c) // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    def back(w: Array, c: Any) -> Array:
        return w.reshape(heads(c), w.shape[0] // heads(c) // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)

    return Change(there, back)


def _split(w: Array, c: Any) -> Array:
    n = c.num_attention_heads
    return w.reshape(n, 3, w.shape[0] // n // 3, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)


def _interleave(w: Array, c: Any) -> Array:
    n = c.num_attention_heads
    return w.reshape(3, n, w.shape[0] // n // 3, *w.shape[1:]).swapaxes(0, 1).reshape(w.shape)


ROTARY = {
    r"q_proj\.(weight|bias)$": _rotary(lambda c: c.num_attention_heads),
    r"k_proj\.(weight|bias)$": _rotary(lambda c: c.num_key_value_heads),
}
PLUS_ONE = {r"norm\.weight$": Change(lambda w, _: w + 1, lambda w, _: w - 1)}
TRANSPOSED = {r"(c_attn|c_fc|c_proj)\.weight$": Change(lambda w, _: w.T, lambda w, _: w.T)}
SPLIT = {r"query_key_value\.(weight|bias)$": Change(_split, _interleave)}
FLAT = {r"shared_expert_gate\.weight$": Change(lambda w, _: w[0], lambda w, _: w[None])}

SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
}
MLP = {"feed_forward_length": "intermediate_size"}
GROUPED = {"attention.head_count_kv": "num_key_value_heads"}
RMS = {"attention.layer_norm_rms_epsilon": "rms_norm_eps"}
NORM = {"attention.layer_norm_epsilon": "layer_norm_eps"}
HEAD = {"attention.key_length": "head_dim", "attention.value_length": "head_dim"}
LLAMA = SIZES | MLP | GROUPED | RMS
EXPERTS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}


@dataclass(frozen=True)
class Converter:
    """How the models of an architecture are converted: `keys` of the metadata by fields of the configuration."""

    name: str
    keys: Mapping[str, str]
    changes: Mapping[str, Change] = field(default_factory=dict)
    rope: bool = True
    fixed: Mapping[str, Any] = field(default_factory=dict)


CONVERTERS = {
    "llama": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "mistral": Converter("llama", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "mixtral": Converter(
        "llama",
        LLAMA | {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"},
        ROTARY,
    ),
    "smollm3": Converter("smollm3", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "arcee": Converter("arcee", LLAMA | {"vocab_size": "vocab_size"} | HEAD, ROTARY),
    "qwen2": Converter("qwen2", LLAMA),
    "qwen3": Converter("qwen3", LLAMA | HEAD),
    "qwen2_moe": Converter(
        "qwen2moe",
        LLAMA | EXPERTS | {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
        FLAT,
    ),
    "qwen3_moe": Converter("qwen3moe", LLAMA | HEAD | EXPERTS),
    "gemma": Converter("gemma", LLAMA | HEAD, PLUS_ONE),
    "gemma2": Converter(
        "gemma2",
        LLAMA
        | HEAD
        | {
            "attention.sliding_window": "sliding_window",
            "attn_logit_softcapping": "attn_logit_softcapping",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        PLUS_ONE,
    ),
    "gemma3_text": Converter("gemma3", LLAMA | HEAD | {"attention.sliding_window": "sliding_window"}, PLUS_ONE),
    "phi": Converter("phi2", SIZES | MLP | GROUPED | NORM),
    "phi3": Converter("phi3", LLAMA),
    "starcoder2": Converter("starcoder2", SIZES | MLP | GROUPED | {"attention.layer_norm_epsilon": "norm_epsilon"}),
    "gpt2": Converter(
        "gpt2", SIZES | {"attention.layer_norm_epsilon": "layer_norm_epsilon"}, TRANSPOSED, rope=False
    ),
    "gpt_neox": Converter("gptneox", SIZES | MLP | NORM | {"use_parallel_residual": "use_parallel_residual"}, SPLIT),
    "bloom": Converter(
        "bloom",
        {name: key for name, key in SIZES.items() if name != "context_length"}
        | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        SPLIT,
        rope=False,
        fixed={"context_length": 64},
    ),
    "mpt": Converter(
        "mpt",
        {
            "context_length": "max_seq_len",
            "embedding_length": "d_model",
            "block_count": "n_layers",
            "attention.head_count": "n_heads",
        },
        rope=False,
        fixed={"attention.layer_norm_epsilon": 1e-5, "attention.max_alibi_bias": 8.0},
    ),
    "stablelm": Converter(
        "stablelm", SIZES | MLP | GROUPED | NORM | {"use_parallel_residual": "use_parallel_residual"}
    ),
    "cohere": Converter("command-r", SIZES | MLP | GROUPED | NORM | {"logit_scale": "logit_scale"}),
    "olmo": Converter("olmo", SIZES | MLP | GROUPED, ROTARY, fixed={"attention.layer_norm_epsilon": 1e-5}),
    "olmo2": Converter("olmo2", LLAMA),
    "granite": Converter(
        "granite",
        LLAMA
        | {
            "embedding_scale": "embedding_multiplier",
            "residual_scale": "residual_multiplier",
            "attention.scale": "attention_multiplier",
            "logit_scale": "logits_scaling",
        },
        ROTARY,
    ),
    "nemotron": Converter(
        "nemotron", SIZES | MLP | GROUPED | {"attention.layer_norm_epsilon": "norm_eps"}, PLUS_ONE
    ),
    "bert": Converter("bert", SIZES | MLP | NORM, rope=False, fixed={"attention.causal": False}),
}


def draw(name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Valid blocks of a type, as bytes: any codes, with scales such that weights are of the usual size."""
    import gguf

    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    rows, blocks = int(np.prod(shape[:-1])), shape[-1] // elements
    drawn = (weights.bits(f"{kind}.{name}", rows * blocks * size) >> np.uint64(56)).astype(np.uint8)
    drawn = drawn.reshape(rows * blocks, size)
    scales = weights.bits(f"scale.{kind}.{name}", rows * blocks * 2).astype(np.float64).reshape(-1, 2) / 2.0**64
    if kind == "MXFP4":
        drawn[:, 0] = 122 + scales[:, 0] * 3
    for index, place in enumerate(HALVES.get(kind, ())):
        # What a code is multiplied with at most: 63 by 15 in Q4_K, 127 by 32 in Q6_K.
        most = {"IQ4_NL": 127, "IQ4_XS": 127 * 32, "Q6_K": 32 * 128, "Q3_K": 4 * 32, "Q2_K": 45, "Q4_K": 63 * 15}.get(kind, 63 * 31)
        half = ((0.5 + scales[:, index]) * 0.4 / most).astype(np.float16)
        drawn[:, place : place + 2] = half.view(np.uint8).reshape(-1, 2)
    return drawn.reshape(*shape[:-1], blocks * size)


def stored(name: str, values: Array, kind: str) -> tuple[Array, Array]:
    """A tensor's bytes in a type, and the values that they stand for."""
    import gguf

    number = gguf.GGMLQuantizationType[kind]
    data = draw(name, values.shape, kind) if kind in HALVES or kind == "MXFP4" else gguf.quants.quantize(values, number)
    return data, gguf.quants.dequantize(data, number).reshape(values.shape)


@dataclass(frozen=True)
class GgufCase:
    """`path` is the folder under the goldens; `kind` says of what type a tensor is, by its name in the file and its shape."""

    path: str
    model_class: str
    config: transformers.PreTrainedConfig
    inputs: Inputs
    kind: Callable[[str, tuple[int, ...]], str]
    notes: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Files:
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "model.gguf"
            outputs = self.write(path)
            data = path.read_bytes()
        tensors = {f"in.{name}": value for name, value in self.inputs.items()}
        # The converter leaves a pooler out.
        tensors |= {f"out.{name}": value for name, value in outputs.items() if name != "pooler_output"}
        case = {
            "format": 1,
            "model": self.config.model_type,
            "class": self.model_class,
            "reference": versions(),
            "weights": "file",
            "notes": self.notes,
        }
        files = {"model.gguf": data, "io.safetensors": to_safetensors(tensors), "case.json": to_json(case)}
        return {f"{self.path}/{name}": data for name, data in files.items()}

    def write(self, path: Path) -> dict[str, Array]:
        """Writes the file, and gives the reference's outputs of the weights in it."""
        import gguf
        from safetensors.torch import load_file, save_file

        config = self.config
        converter = CONVERTERS[config.model_type]
        writer = gguf.GGUFWriter(path, converter.name)
        for key, value in self.values(converter).items():
            add(writer, f"{converter.name}.{key}", value)
        for key, value in self.metadata.items():
            add(writer, key, value)
        architecture = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}[converter.name]
        names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            model, _ = ruled_model(self.model_class, config)
            model.save_pretrained(folder)
            tensors = {name: tensor.numpy() for name, tensor in load_file(folder / "model.safetensors").items()}
            for group in grouped(tensors):
                self.tensor(group, tensors, converter, names, writer)
            kept = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in tensors.items()}
            save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
            rewrite(folder / "config.json", {})
            again, info = loaded(getattr(transformers, self.model_class), folder, "eager")
            if info["missing_keys"] or info["unexpected_keys"]:
                raise ValueError(f"the dequantized weights do not fill the model: {info}")
            outputs = run(again.eval(), self.inputs, {})
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return outputs

    def tensor(self, group: list[str], tensors: dict[str, Array], converter: Converter, names: Any, writer: Any) -> None:
        """Adds one tensor of the file, of one of the checkpoint's or of all experts'; the checkpoint's then hold its values."""
        import gguf

        first = group[0]
        change = next((c for pattern, c in converter.changes.items() if re.search(pattern, first)), None)
        value = np.stack([tensors[name] for name in group]) if len(group) > 1 else tensors[first]
        value = np.ascontiguousarray(change.there(value, self.config) if change else value)
        stem, ending = re.fullmatch(r"(.*?)(\.weight|\.bias)?", first).groups()  # type: ignore[union-attr]
        stem = re.sub(r"experts\.\d+\.", "experts.", stem)
        # What the converter takes off before it looks names up.
        stem = stem.removeprefix({"bert": "bert.", "bloom": "transformer."}.get(converter.name, "none"))
        if (converter.name, stem) in DROPPED:
            return
        found = names.get_name(stem)
        if found is None:
            raise ValueError(f"llama.cpp has no name for {first} ({stem}) of {converter.name}")
        name = found + (ending or "")
        kind = self.kind(name, value.shape) if value.ndim > 1 else "F32"
        data, values = stored(name, value.astype(np.float32), kind)
        number = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(name, data, raw_dtype=number)
        values = change.back(values, self.config) if change else values
        for index, member in enumerate(group):
            tensors[member] = values[index] if len(group) > 1 else values

    def values(self, converter: Converter) -> dict[str, Any]:
        """The metadata of the configuration."""
        config = self.config
        found = {key: getattr(config, name, None) for key, name in converter.keys.items()}
        found = {key: value for key, value in found.items() if value is not None} | dict(converter.fixed)
        if config.model_type == "gpt2":
            found["feed_forward_length"] = 4 * config.n_embd
        if converter.rope:
            rope = config.rope_parameters
            full = rope.get("full_attention", rope)
            found["rope.freq_base"] = float(full["rope_theta"])
            width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            found["rope.dimension_count"] = int(width * (full.get("partial_rotary_factor") or 1.0))
            if "sliding_attention" in rope:
                found["rope.freq_base_swa"] = float(rope["sliding_attention"]["rope_theta"])
        return found


DROPPED = {("bert", "pooler.dense")}


def grouped(tensors: Mapping[str, Array]) -> list[list[str]]:
    """The names of a checkpoint, those of all experts of a layer together."""
    groups: dict[str, list[str]] = {}
    for name in sorted(tensors, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]):
        groups.setdefault(re.sub(r"experts\.\d+\.", "experts.N.", name), []).append(name)
    return list(groups.values())


def add(writer: Any, key: str, value: Any) -> None:
    """A key by its value's type, as the writer's own methods choose them."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
