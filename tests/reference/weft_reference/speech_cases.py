"""A task golden of speech by a processor: what `generate` gives of its inputs, and its tokenizer's text of that.

Models whose processor does more than its feature extractor, which is all that `transformers.pipeline` calls.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig

from weft_reference.audio_tasks import named, samples
from weft_reference.cases import ruled_model, save_config
from weft_reference.files import Files, folder_files
from weft_reference.processors import sounds
from weft_reference.tasks import Call, record, task_json

TASK = "automatic-speech-recognition"
Prepare = Callable[[Any, Any, dict[str, Any]], Mapping[str, Any]]
Decode = Callable[[Any, list[Any], Mapping[str, Any], dict[str, Any]], str]


def plain(processor: Any, audio: Any, _: dict[str, Any]) -> Mapping[str, Any]:
    """The processor's inputs of samples alone."""
    return processor(audio, sampling_rate=processor.feature_extractor.sampling_rate, return_tensors="pt")


def first(processor: Any, rows: list[Any], _: Mapping[str, Any], __: dict[str, Any]) -> str:
    """The text of the first row."""
    return processor.tokenizer.decode(rows[0], skip_special_tokens=True)


@dataclass(frozen=True)
class SpeechTaskCase:
    """`prepare` makes the inputs of samples, and takes of `generate_kwargs` what is not for `generate`; `decode` makes a text of
    what was generated of each row of inputs, of the processor's other results and of all options."""

    model: str
    model_class: str
    config: PreTrainedConfig
    processor: Any
    calls: tuple[Call, ...]
    notes: str = ""
    generation: Mapping[str, Any] | None = None
    prepare: Prepare = plain
    decode: Decode = first
    name: str = TASK

    @property
    def path(self) -> str:
        return f"{self.model}/tasks/{self.name}"

    def make(self) -> Files:
        model, parameters = ruled_model(self.model_class, self.config)
        if self.generation is not None:
            model.generation_config = transformers.GenerationConfig(**self.generation)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            save_config(model, folder)
            self.processor.save_pretrained(folder)
            if self.generation is not None:
                model.generation_config.save_pretrained(folder)
            files = folder_files(folder)
        rate = self.processor.feature_extractor.sampling_rate

        def text(given: Any, parameters: dict[str, Any]) -> dict[str, str]:
            options = dict(parameters.get("generate_kwargs", {}))
            made = dict(self.prepare(self.processor, samples(given, rate), options))
            inputs = {name: value for name, value in made.items() if isinstance(value, torch.Tensor)}
            others = {name: value for name, value in made.items() if name not in inputs}
            rows = []
            for row in range(len(next(iter(inputs.values())))):
                with torch.no_grad():
                    written = model.generate(**{name: x[row : row + 1] for name, x in inputs.items()}, **options)
                rows.append(getattr(written, "sequences", written)[0])
            asked = dict(parameters.get("generate_kwargs", {}))
            return {"text": self.decode(self.processor, rows, others, asked)}

        def answer(given: Any, parameters: dict[str, Any]) -> Any:
            return [text(one, parameters) for one in given] if isinstance(given, list) else text(given, parameters)

        calls = [record(call, answer, model) for call in self.calls]
        for sound in named(self.calls):
            files[sound] = (sounds.FOLDER / sound).read_bytes()
        files["task.json"] = task_json(TASK, self.model_class, calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}
