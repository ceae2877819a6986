"""A task golden with sounds in: a tiny checkpoint with a feature extractor, and what `transformers.pipeline` answers.

Calls name sounds of `data/audio`, which lie in the case's folder. The pipeline gets their samples at the extractor's
rate, as `torchaudio` would resample them: it reads files by programs that are not asked for here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig

from weft_reference.cases import ruled_model, save_config
from weft_reference.files import Files, folder_files
from weft_reference.processors import sounds
from weft_reference.processors.audio import middle
from weft_reference.processors.resample import resample
from weft_reference.tasks import Call, record, task_json


@dataclass(frozen=True)
class AudioTaskCase:
    """`files` are what the checkpoint has beside config and extractor, by name, such as a tokenizer's."""

    path: str
    task: str
    model_class: str
    config: PreTrainedConfig
    extractor: Any
    calls: tuple[Call, ...]
    notes: str = ""
    tokenizer: Any = None
    generation: Mapping[str, Any] | None = None

    def make(self) -> Files:
        model, parameters = ruled_model(self.model_class, self.config)
        if self.generation is not None:
            model.generation_config = transformers.GenerationConfig(**self.generation)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            save_config(model, folder)
            self.extractor.save_pretrained(folder)
            if self.tokenizer is not None:
                self.tokenizer.save_pretrained(folder)
            if self.generation is not None:
                model.generation_config.save_pretrained(folder)
            files = folder_files(folder)
        made = transformers.pipeline(
            self.task,
            model=model,
            tokenizer=self.tokenizer,
            feature_extractor=self.extractor,
            device="cpu",
            dtype=torch.float32,
        )
        rate = self.extractor.sampling_rate

        def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
            many = [samples(one, rate) for one in inputs] if isinstance(inputs, list) else samples(inputs, rate)
            with middle():
                return plain(made(many, **parameters))

        calls = [record(call, answer, model) for call in self.calls]
        for name in named(self.calls):
            files[name] = (sounds.FOLDER / name).read_bytes()
        files["task.json"] = task_json(self.task, self.model_class, calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}


def named(calls: tuple[Call, ...]) -> set[str]:
    """The files that calls name."""
    inputs = [one for call in calls for one in (call.inputs if isinstance(call.inputs, list) else [call.inputs])]
    return {one for one in inputs if isinstance(one, str)}


def samples(given: Any, rate: int) -> np.ndarray:
    if isinstance(given, str):
        return resample(sounds.samples(given), sounds.rate(given), rate)
    return resample(np.array(given["array"], np.float32), given["sampling_rate"], rate)


def plain(answer: Any) -> Any:
    """The answer as JSON has it: tuples are lists, numpy's numbers are Python's."""
    if isinstance(answer, dict):
        return {name: plain(value) for name, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [plain(value) for value in answer]
    return answer.item() if isinstance(answer, np.generic) else answer
