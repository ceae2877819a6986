"""A golden case: one model class, a tiny config and inputs, run through the reference.

The folder of a case: `config.json`, `io.safetensors` (`in.<forward argument>`, `out.<forward output>`),
`case.json`, and weight files only where the case is about weight files.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from weft_reference import states, weights
from weft_reference.files import Files, folder_files, to_json, to_safetensors

# One expert after another: the grouped product refuses rows that are no multiple of 16 bytes.
EXPERTS = "eager"
NOT_COMPARED = ("loss", "hidden_states", "decoder_hidden_states", "attentions", "cross_attentions", "past_key_values")
Inputs = Mapping[str, np.ndarray]
Store = Callable[[transformers.PreTrainedModel, Path], None]


@dataclass(frozen=True)
class Case:
    """`path` is the folder under the goldens; `store` writes weight files (none: weights by the rule); `build` is what the
    class is made with besides its config; parameters that end in `computed` are made where a checkpoint leaves them out;
    `told` are inputs of the reference alone, which Weft finds by itself, `own` those of Weft alone, such as what the reference
    draws at random, which it is built and run `within` to take from there; `written` are fields as a published `config.json`
    has them where `save_pretrained` writes otherwise, `None` where it has none; outputs that begin with one of
    `without` are not compared, nor are those of `infinite` where they have −∞; with `states` those of the cache are, of which
    layers of fixed size keep some; `rename` gives the weights of a folder the names of published files that the reference
    reads with another package alone."""

    path: str
    model_class: str
    config: transformers.PreTrainedConfig
    inputs: Inputs
    notes: str = ""
    store: Store | None = None
    forward: Mapping[str, Any] = field(default_factory=dict)
    attention: str | dict[str, str] = "eager"
    build: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float | None = None
    tolerance_reason: str | None = None
    computed: str | None = None
    told: Inputs = field(default_factory=dict)
    own: Inputs = field(default_factory=dict)
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    written: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    infinite: tuple[str, ...] = ()
    rename: Callable[[Path], None] | None = None
    states: bool = False

    def make(self) -> Files:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            with self.within():
                model, parameters = self.model(folder)
                given = {**self.inputs, **self.told}
                outputs = run(model, given, self.forward, self.without, self.infinite)
                left = states.left(model, given) if self.states else {}
            rewrite(folder / "config.json", self.written)
            if self.rename:
                self.rename(folder)
            files = folder_files(folder)
        tensors = {f"in.{name}": value for name, value in {**self.inputs, **self.own}.items()}
        tensors |= {f"out.{name}": value for name, value in outputs.items()}
        tensors |= {f"state.{name}": value for name, value in left.items()}
        case = {
            "format": 1,
            "model": self.config.model_type,
            "class": self.model_class,
            "reference": versions(),
            "weights": "file" if self.store else "rule",
            "tolerance": self.tolerance,
            "tolerance_reason": self.tolerance_reason,
            "notes": self.notes,
            "parameters": {} if self.store else parameters,
        }
        if self.forward:
            case["forward"] = dict(self.forward)
        files |= {"io.safetensors": to_safetensors(tensors), "case.json": to_json(case)}
        return {f"{self.path}/{name}": data for name, data in files.items()}

    def model(self, folder: Path) -> tuple[transformers.PreTrainedModel, dict[str, list[int]]]:
        """The model, with the checkpoint it is to be read from written to `folder`."""
        model, parameters = ruled_model(self.model_class, self.config, attention=self.attention, **self.build)
        if self.store is None:
            save_config(model, folder)
            return model, parameters
        self.store(model, folder)
        again, info = loaded(getattr(transformers, self.model_class), folder, self.attention)
        missing = [name for name in info["missing_keys"] if not (self.computed and name.endswith(self.computed))]
        if missing or info["mismatched_keys"]:
            raise ValueError(f"the stored checkpoint does not fill the model: {info}")
        return again.eval(), parameters

    def intermediates(self) -> dict[str, np.ndarray]:
        """The first output of every module by its name: for finding where a graph departs from the reference."""
        found: dict[str, np.ndarray] = {}

        def keep(name: str) -> Callable[..., None]:
            def hook(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
                first = output[0] if isinstance(output, (tuple, list)) and output else output
                if isinstance(first, torch.Tensor) and name not in found:
                    found[name] = first.detach().numpy().copy()

            return hook

        with tempfile.TemporaryDirectory() as temporary, self.within():
            model, _ = self.model(Path(temporary))
            for name, module in model.named_modules():
                if name:
                    module.register_forward_hook(keep(name))
            run(model, {**self.inputs, **self.told}, self.forward, self.without, self.infinite)
        return found


# What in memory is one tensor and in checkpoints several: experts, the convolutions of OLMo Hybrid.
STORED = (".experts.", ".linear_attn.o_norm.")
# What checkpoints hold of the configuration: lightning attention's tables.
COMPUTED = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")


def versions() -> dict[str, str]:
    return {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}


def deterministic() -> None:
    """One thread, float32, deterministic kernels, no messages."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(True)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def ruled_model(
    model_class: str, config: transformers.PreTrainedConfig, salt: int = 0, attention: str | dict[str, str] = "eager", **build: Any
) -> tuple[transformers.PreTrainedModel, dict[str, list[int]]]:
    """A model in eval mode with weights by the rule, and the names and shapes that were filled."""
    torch.manual_seed(0)
    build = {"attn_implementation": attention, "experts_implementation": EXPERTS, **build}
    model = getattr(transformers, model_class)._from_config(config, **build)
    model = model.float().eval()
    if any(part in name for name, _ in model.named_parameters() for part in STORED):
        return stored_model(model, salt, attention)
    return model, weights.fill(model, salt)


def stored_model(
    model: transformers.PreTrainedModel, salt: int, attention: str
) -> tuple[transformers.PreTrainedModel, dict[str, list[int]]]:
    """The model again, with weights by the rule under the names that checkpoints have: in memory experts are one tensor."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        path = Path(folder) / "model.safetensors"
        shapes = {name: list(tensor.shape) for name, tensor in load_file(path).items()}
        tables = {name: tensor for name, tensor in load_file(path).items() if name.endswith(COMPUTED)}
        shapes = {name: shape for name, shape in shapes.items() if name not in tables}
        tensors = {name: torch.from_numpy(weights.values(name, tuple(shape), salt)) for name, shape in shapes.items()}
        tensors |= tables
        save_file(tensors, path, metadata={"format": "pt"})
        again, info = loaded(type(model), Path(folder), attention)
    if info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]:
        raise ValueError(f"the names that were written do not fill the model: {info}")
    return again.eval(), shapes


def loaded(
    model_class: type[transformers.PreTrainedModel], folder: Path, attention: str
) -> tuple[transformers.PreTrainedModel, dict[str, Any]]:
    """A checkpoint in float32, and which of its names were found."""
    return model_class.from_pretrained(
        folder,
        dtype=torch.float32,
        attn_implementation=attention,
        experts_implementation=EXPERTS,
        output_loading_info=True,
    )


def rewrite(path: Path, written: Mapping[str, Any]) -> None:
    """Changes fields of a JSON file, or takes them out."""
    if written:
        fields = json.loads(path.read_text()) | written
        path.write_bytes(to_json({name: value for name, value in fields.items() if value is not None}))


def save_config(model: transformers.PreTrainedModel, folder: Path) -> None:
    """`config.json` as `save_pretrained` writes it with a model."""
    model.config.architectures = [type(model).__name__]
    model.config.dtype = model.dtype
    model.config.save_pretrained(folder)


def run(
    model: transformers.PreTrainedModel,
    inputs: Inputs,
    forward: Mapping[str, Any],
    without: tuple[str, ...] = (),
    infinite: tuple[str, ...] = (),
) -> dict[str, np.ndarray]:
    """The compared outputs of one forward call: of a tuple `name.0`, `name.1` ..., of a sub-model `name.last_hidden_state`."""
    arguments = {name: torch.from_numpy(value) for name, value in inputs.items()}
    result = model(**arguments, **{"return_dict": True, **forward})
    if isinstance(result, torch.Tensor):
        result = {"waveform": result}  # A vocoder's, which has no name there.
    outputs: dict[str, np.ndarray] = {}
    _flatten("", result, outputs)
    outputs = {name: value for name, value in outputs.items() if not name.startswith(without or ("\0",))}
    hidden = [name for name, value in outputs.items() if name.startswith(infinite or ("\0",)) and np.isneginf(value).any()]
    outputs = {name: value for name, value in outputs.items() if name not in hidden}
    if not outputs:
        raise ValueError(f"{type(model).__name__} returned nothing to compare, only {list(result)}")
    for name, value in outputs.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{type(model).__name__}: output {name} is not finite; choose another config or input")
    return outputs


def _flatten(name: str, value: Any, into: dict[str, np.ndarray]) -> None:
    if isinstance(value, torch.Tensor):
        array = value.detach().numpy()
        into[name] = array.astype({"f": np.float32, "i": np.int64}.get(array.dtype.kind, array.dtype))
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            _flatten(f"{name}.{index}", item, into)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in NOT_COMPARED:
                _flatten(f"{name}.{key}" if name else key, item, into)
