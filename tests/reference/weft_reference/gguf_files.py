"""GGUF files as llama.cpp's `convert_hf_to_gguf.py` and `llama-quantize` write them, and the weights that they then hold.

Needs the package `gguf`, which is no requirement of anything else here. Tensors of the k-quants, which it cannot make, are
drawn block by block.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from weft_reference import weights
from weft_reference.cases import Inputs, loaded, rewrite, ruled_model, run, versions
from weft_reference.files import Files, to_json, to_safetensors
from weft_reference.gguf_converters import RENAMED, SINGLE, Array, Change, Converter, Split, converter_of

# What there are several of, which the converter makes one tensor.
MERGED = r"(experts|altup_projections|altup_unembed_projections)\.\d+\."
# The places of each block's scales, half precision, for types that are drawn; MXFP4's is an exponent.
HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,)}


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
    added: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Tensors that published checkpoints have, and those that are saved here have not: a head that is its own."""
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    """In which the reference is built and run."""

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

        with tempfile.TemporaryDirectory() as temporary, self.within():
            folder = Path(temporary)
            model, _ = ruled_model(self.model_class, self.config)
            model.save_pretrained(folder)
            kept = load_file(folder / "model.safetensors")
            self.config.architectures = [self.model_class]
            kept |= {name: torch.from_numpy(weights.values(name, shape, 0)) for name, shape in self.added.items()}
            convert(self.config, kept, path, self.kind, self.metadata)
            behind = f"model.layers.{layers_of(self.config)}."
            kept = {name: tensor for name, tensor in kept.items() if not name.startswith(behind)}
            save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
            rewrite(folder / "config.json", {})
            again, info = loaded(getattr(transformers, self.model_class), folder, "eager")
            if info["missing_keys"] or info["unexpected_keys"]:
                raise ValueError(f"the dequantized weights do not fill the model: {info}")
            return run(again.eval(), self.inputs, {})


def layers_of(config: Any) -> int:
    """Those of the text's decoder, where that has a configuration of its own."""
    return int(getattr(config, "text_config", config).num_hidden_layers)


Kind = Callable[[str, tuple[int, ...]], str]


def convert(
    config: Any, tensors: dict[str, torch.Tensor], path: Path, kind: Kind, metadata: Mapping[str, Any]
) -> None:
    """Writes a checkpoint as one file, a tensor at a time; the checkpoint's tensors then hold what the file's stand for.

    `kind` says of what type a tensor is, by its name in the file and its shape; `metadata` is added to the configuration's.
    """
    import gguf

    converter = converter_of(config)
    writer = gguf.GGUFWriter(path, converter.name)
    for key, value in converter.metadata(config).items():
        add(writer, f"{converter.name}.{key}", value)
    for key, value in metadata.items():
        add(writer, key, value)
    listed: set[str] = set()
    for key, pattern in converter.numbers.items():
        own = [name for [name] in grouped({name: tensors[name] for name in tensors if re.search(pattern, name)})]
        add(writer, key, [tensors[name].item() for name in own])
        listed.update(own)
    architecture = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}[converter.names or converter.name]
    layers = max(layers_of(config), getattr(config, "num_decoder_layers", None) or 0)
    # Layers of multi-token prediction come behind the others.
    layers = max(layers, metadata.get(f"{converter.name}.block_count", 0))
    names = gguf.get_tensor_name_map(architecture, layers)
    others = {name: tensor for name, tensor in tensors.items() if name not in listed}
    parts = [part for group in grouped(others) for part in parts_of(group, converter, names, config)]
    for part in parts:
        shape = part.shape(tensors, config)
        single = len(shape) == 1 or part.name.endswith(".bias") or any(piece in part.name for piece in SINGLE)
        number = part.type = gguf.GGMLQuantizationType["F32" if single else kind(part.name, shape)]
        elements, size = gguf.GGML_QUANT_SIZES[number]
        length = int(np.prod(shape)) // elements * size
        writer.add_tensor_info(part.name, shape, np.dtype(np.float32), length, raw_dtype=number)
    extra = converter.extra(config)
    for name, value in extra.items():
        writer.add_tensor_info(name, value.shape, value.dtype, value.nbytes)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for part in parts:
        data, found = stored(part.name, part.value(tensors, config), part.type.name)
        writer.write_tensor_data(data)
        part.take(found, tensors, config)
    for value in extra.values():
        writer.write_tensor_data(value)
    writer.close()


class Part:
    """A tensor of a file: one of the checkpoint's, or those of all experts of a layer."""

    def __init__(self, members: list[str], name: str, converter: Converter) -> None:
        self.members, self.name = members, name
        self.type: Any = None
        fits = (change for pattern, change in converter.changes.items() if re.search(pattern, members[0]))
        self.change = next(fits, None) or Change(lambda w, _: w, lambda w, _: w)

    def shape(self, tensors: Mapping[str, torch.Tensor], config: Any) -> tuple[int, ...]:
        first = self.change.there(tensors[self.members[0]].float().numpy(), config).shape
        return (len(self.members), *first) if len(self.members) > 1 else first

    def value(self, tensors: Mapping[str, torch.Tensor], config: Any) -> Array:
        found = [self.change.there(tensors[member].float().numpy(), config) for member in self.members]
        return np.ascontiguousarray(np.stack(found) if len(found) > 1 else found[0])

    def take(self, value: Array, tensors: dict[str, torch.Tensor], config: Any) -> None:
        """Puts what the file's tensor stands for into the checkpoint's."""
        for member, one in zip(self.members, value if len(self.members) > 1 else [value], strict=True):
            one = np.ascontiguousarray(self.change.back(one, config))
            tensors[member] = torch.from_numpy(one).to(tensors[member].dtype)


class SplitPart:
    """A tensor of a file that is a part of one of the checkpoint's, of which `taken` are the parts that were written."""

    def __init__(self, member: str, name: str, split: Split, index: int, taken: list[Array]) -> None:
        self.member, self.name, self.split, self.index, self.taken = member, name, split, index, taken
        self.type: Any = None

    def shape(self, tensors: Mapping[str, torch.Tensor], config: Any) -> tuple[int, ...]:
        return self.value(tensors, config).shape

    def value(self, tensors: Mapping[str, torch.Tensor], config: Any) -> Array:
        return np.ascontiguousarray(self.split.there(tensors[self.member].float().numpy(), config)[self.index])

    def take(self, value: Array, tensors: dict[str, torch.Tensor], config: Any) -> None:
        """Puts what the file's tensors stand for into the checkpoint's, with the last of them."""
        self.taken.append(value)
        if len(self.taken) == len(self.split.names):
            whole = np.ascontiguousarray(self.split.back(self.taken, config))
            tensors[self.member] = torch.from_numpy(whole).to(tensors[self.member].dtype)


def parts_of(members: list[str], converter: Converter, names: Any, config: Any) -> list[Part | SplitPart]:
    """What becomes of a checkpoint's tensor, or of those of all experts of a layer."""
    splits = converter.splits(config).items()
    split = next((split for pattern, split in splits if re.search(pattern, members[0])), None)
    if split is None:
        name = stored_name(members[0], converter, names)
        return [Part(members, name, converter)] if name else []
    layer = re.search(r"\.(\d+)\.", members[0])
    taken: list[Array] = []
    number = layer[1] if layer else ""
    return [SplitPart(members[0], name.format(number), split, index, taken) for index, name in enumerate(split.names)]


def stored_name(first: str, converter: Converter, names: Any) -> str | None:
    """The file's name of a checkpoint's tensor, or of all experts' of which this is the first's; none where it has none."""
    renamed = next((first.replace(*pair) for pair in RENAMED.items() if first.endswith(pair[0])), first)
    stem, ending = re.fullmatch(r"(.*?)(\.weight|\.bias)?", renamed).groups()  # type: ignore[union-attr]
    stem = re.sub(MERGED, r"\1.", stem + ".")[:-1]
    stem = stem.removeprefix(converter.prefix)
    for piece, called in converter.renamed.items():
        stem = re.sub(piece, called, stem)
    if stem in converter.dropped:
        return None
    whole = names.get_name(stem + (ending or ""))
    if whole is not None:
        return whole
    found = names.get_name(stem)
    if found is None:
        raise ValueError(f"llama.cpp has no name for {first} ({stem}) of {converter.name}")
    return found + (ending or "")


def grouped(tensors: Mapping[str, Array]) -> list[list[str]]:
    """The names of a checkpoint, those of all experts of a layer together."""
    groups: dict[str, list[str]] = {}
    for name in sorted(tensors, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]):
        groups.setdefault(re.sub(MERGED, r"\1.N.", name), []).append(name)
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
