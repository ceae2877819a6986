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
SQUEEZED = {r"conv(1d)?\.weight$": Change(lambda w, _: w[:, 0], lambda w, _: w[:, None])}
DECAY = {r"A_log$": Change(lambda w, _: -np.exp(w), lambda w, _: np.log(-w))}
DECAY_COLUMN = {r"A_log$": Change(lambda w, _: -np.exp(w)[:, None], lambda w, _: np.log(-w)[:, 0])}
COLUMN = {r"mixer\.D$": Change(lambda w, _: w[:, None], lambda w, _: w[:, 0])}
GROUPED_NORM = {
    r"mixer\.norm\.weight$": Change(lambda w, c: w.reshape(c.n_groups, -1), lambda w, _: w.reshape(-1))
}

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
    made: Callable[[Any], dict[str, Any]] = lambda _config: {}
    """What the converter computes of the configuration."""


def _pattern(config: Any) -> dict[str, Any]:
    return {"attention.sliding_window_pattern": [kind == "sliding_attention" for kind in config.layer_types]}


def _adjusted(config: Any) -> int:
    """The width of LFM2's MLPs."""
    width = config.intermediate_size
    if config.block_auto_adjust_ff_dim:
        width = int(config.block_ffn_dim_multiplier * int(2 * width / 3))
        width = -(-width // config.block_multiple_of) * config.block_multiple_of
    return width


WINDOW = {"attention.sliding_window": "sliding_window"}
USED = {"expert_used_count": "num_experts_per_tok"}
ROUTED = USED | {
    "expert_count": "n_routed_experts",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
}
STATES = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "ssm.conv_kernel": "conv_kernel",
    "ssm.state_size": "state_size",
    "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
}
# Written because llama.cpp asks for them.
UNUSED = {"context_length": 2**20, "feed_forward_length": 0, "attention.head_count": 0}
MAMBA = Converter(
    "mamba",
    STATES | {"ssm.inner_size": "intermediate_size", "ssm.time_step_rank": "time_step_rank"},
    SQUEEZED | DECAY,
    rope=False,
    fixed=UNUSED,
    made=lambda c: {"ssm.dt_b_c_rms": c.model_type == "falcon_mamba"},
)

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
        "gpt2",
        SIZES | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        TRANSPOSED,
        rope=False,
        made=lambda c: {"feed_forward_length": 4 * c.n_embd},
    ),
    "gpt_neox": Converter("gptneox", SIZES | MLP | NORM | {"use_parallel_residual": "use_parallel_residual"}, SPLIT),
    "bloom": Converter(
        "bloom",
        {name: key for name, key in SIZES.items() if name != "context_length"}
        | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        SPLIT,
        rope=False,
        fixed={"context_length": 64},
        made=lambda c: {"feed_forward_length": 4 * c.hidden_size},
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
        made=lambda c: {"feed_forward_length": c.expansion_ratio * c.d_model},
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
    "cohere2": Converter("cohere2", SIZES | MLP | GROUPED | NORM | WINDOW | {"logit_scale": "logit_scale"}),
    "exaone4": Converter("exaone4", LLAMA | HEAD | WINDOW, made=_pattern),
    "olmo3": Converter("olmo2", LLAMA | WINDOW, made=_pattern),
    "glm4": Converter("glm4", LLAMA | HEAD),
    "ernie4_5": Converter("ernie4_5", LLAMA | HEAD),
    "hunyuan_v1_dense": Converter("hunyuan-dense", LLAMA | HEAD),
    "seed_oss": Converter("seed_oss", LLAMA | HEAD),
    "jais2": Converter("jais2", SIZES | MLP | GROUPED | NORM | HEAD),
    "gpt_bigcode": Converter(
        "starcoder",
        SIZES | {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
        rope=False,
        fixed={"attention.head_count_kv": 1},
        made=lambda c: {"feed_forward_length": c.n_inner},
    ),
    "eurobert": Converter("eurobert", LLAMA | HEAD, fixed={"attention.causal": False}),
    "olmoe": Converter("olmoe", LLAMA | USED | {"expert_count": "num_experts"}),
    "phimoe": Converter("phimoe", LLAMA | USED | {"expert_count": "num_local_experts"}),
    "ernie4_5_moe": Converter(
        "ernie4_5-moe",
        LLAMA
        | HEAD
        | {
            "expert_count": "moe_num_experts",
            "expert_used_count": "moe_k",
            "expert_feed_forward_length": "moe_intermediate_size",
            "expert_shared_count": "moe_num_shared_experts",
            "leading_dense_block_count": "moe_layer_start_index",
            "interleave_moe_layer_step": "moe_layer_interval",
        },
        made=lambda c: {"expert_shared_feed_forward_length": c.intermediate_size // c.num_key_value_heads},
    ),
    "hunyuan_v1_moe": Converter(
        "hunyuan-moe",
        LLAMA | HEAD | {"expert_count": "num_experts", "expert_feed_forward_length": "intermediate_size"},
        made=lambda c: {"expert_used_count": c.moe_topk, "expert_shared_count": 1},
    ),
    "glm4_moe": Converter("glm4moe", LLAMA | HEAD | ROUTED, fixed={"expert_gating_func": 2}),
    "dots1": Converter("dots1", LLAMA | HEAD | ROUTED, fixed={"expert_gating_func": 2}),
    "minimax_m2": Converter(
        "minimax-m2",
        LLAMA
        | HEAD
        | USED
        | {"expert_count": "num_local_experts", "expert_feed_forward_length": "intermediate_size"},
        fixed={"expert_gating_func": 2},
    ),
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": Converter(
        "mamba2",
        STATES | {"ssm.time_step_rank": "num_heads", "ssm.group_count": "n_groups"},
        SQUEEZED | DECAY_COLUMN | COLUMN | GROUPED_NORM,
        rope=False,
        fixed=UNUSED,
        made=lambda c: {"ssm.inner_size": int(c.expand * c.hidden_size)},
    ),
    "lfm2": Converter(
        "lfm2",
        {**SIZES, "attention.layer_norm_rms_epsilon": "norm_eps", "shortconv.l_cache": "conv_L_cache"},
        SQUEEZED,
        made=lambda c: {
            "feed_forward_length": _adjusted(c),
            "attention.head_count_kv": [c.num_key_value_heads * (t == "full_attention") for t in c.layer_types],
        },
    ),
}
# What converters call other than the checkpoint does, before they look names up.
RENAMED = {"e_score_correction_bias": "e_score_correction.bias", "mixer.dt_bias": "mixer.dt_proj.bias"}
# Kept in single precision, whatever the rest is.
SINGLE = ("ssm_conv1d", "ssm_a", "ssm_d", "ssm_norm", "shortconv.conv", "exp_probs_b")


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
        from safetensors.torch import load_file, save_file

        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            model, _ = ruled_model(self.model_class, self.config)
            model.save_pretrained(folder)
            kept = load_file(folder / "model.safetensors")
            convert(self.config, kept, path, self.kind, self.metadata)
            save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
            rewrite(folder / "config.json", {})
            again, info = loaded(getattr(transformers, self.model_class), folder, "eager")
            if info["missing_keys"] or info["unexpected_keys"]:
                raise ValueError(f"the dequantized weights do not fill the model: {info}")
            return run(again.eval(), self.inputs, {})


Kind = Callable[[str, tuple[int, ...]], str]


def convert(
    config: Any, tensors: dict[str, torch.Tensor], path: Path, kind: Kind, metadata: Mapping[str, Any]
) -> None:
    """Writes a checkpoint as one file, a tensor at a time; the checkpoint's tensors then hold what the file's stand for.

    `kind` says of what type a tensor is, by its name in the file and its shape; `metadata` is added to the configuration's.
    """
    import gguf

    converter = CONVERTERS[config.model_type]
    writer = gguf.GGUFWriter(path, converter.name)
    for key, value in values(converter, config).items():
        add(writer, f"{converter.name}.{key}", value)
    for key, value in metadata.items():
        add(writer, key, value)
    architecture = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}[converter.name]
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    parts = [Part(group, name, converter) for group in grouped(tensors) if (name := stored_name(group[0], converter, names))]
    for part in parts:
        shape = part.value(tensors, config).shape
        single = len(shape) == 1 or any(piece in part.name for piece in SINGLE)
        number = part.type = gguf.GGMLQuantizationType["F32" if single else kind(part.name, shape)]
        elements, size = gguf.GGML_QUANT_SIZES[number]
        length = int(np.prod(shape)) // elements * size
        writer.add_tensor_info(part.name, shape, np.dtype(np.float32), length, raw_dtype=number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for part in parts:
        data, found = stored(part.name, part.value(tensors, config), part.type.name)
        writer.write_tensor_data(data)
        part.take(found, tensors, config)
    writer.close()


class Part:
    """A tensor of a file: one of the checkpoint's, or those of all experts of a layer."""

    def __init__(self, members: list[str], name: str, converter: Converter) -> None:
        self.members, self.name = members, name
        self.type: Any = None
        fits = (change for pattern, change in converter.changes.items() if re.search(pattern, members[0]))
        self.change = next(fits, None) or Change(lambda w, _: w, lambda w, _: w)

    def value(self, tensors: Mapping[str, torch.Tensor], config: Any) -> Array:
        found = [self.change.there(tensors[member].float().numpy(), config) for member in self.members]
        return np.ascontiguousarray(np.stack(found) if len(found) > 1 else found[0])

    def take(self, value: Array, tensors: dict[str, torch.Tensor], config: Any) -> None:
        """Puts what the file's tensor stands for into the checkpoint's."""
        for member, one in zip(self.members, value if len(self.members) > 1 else [value], strict=True):
            one = np.ascontiguousarray(self.change.back(one, config))
            tensors[member] = torch.from_numpy(one).to(tensors[member].dtype)


def stored_name(first: str, converter: Converter, names: Any) -> str | None:
    """The file's name of a checkpoint's tensor, or of all experts' of which this is the first's; none where it has none."""
    renamed = next((first.replace(*pair) for pair in RENAMED.items() if first.endswith(pair[0])), first)
    stem, ending = re.fullmatch(r"(.*?)(\.weight|\.bias)?", renamed).groups()  # type: ignore[union-attr]
    stem = re.sub(r"experts\.\d+\.", "experts.", stem)
    # What the converter takes off before it looks names up.
    stem = stem.removeprefix({"bert": "bert.", "bloom": "transformer."}.get(converter.name, "none"))
    if (converter.name, stem) in DROPPED:
        return None
    found = names.get_name(stem)
    if found is None:
        raise ValueError(f"llama.cpp has no name for {first} ({stem}) of {converter.name}")
    return found + (ending or "")


def values(converter: Converter, config: Any) -> dict[str, Any]:
    """The metadata of the configuration."""
    found = {key: getattr(config, name, None) for key, name in converter.keys.items()}
    found = {key: value for key, value in found.items() if value is not None}
    found |= dict(converter.fixed) | converter.made(config)
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
