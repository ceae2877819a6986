"""A task golden of pictures or videos: as `tasks.TaskCase`, with the checkpoint's image processor, and with the files
that the calls name beside it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from weft_reference.cases import Store, ruled_model, save_config
from weft_reference.files import Files, folder_files
from weft_reference.margins import margin
from weft_reference.processors import pictures
from weft_reference.tasks import Answer, Call, chosen, refuse_close_scores, task_json

# A box nearer than this to a whole pixel could be cut to the one before it just as well.
TOO_CLOSE_TO_A_PIXEL = 1e-3

Answers = Callable[[str, PreTrainedModel, Path], Answer]


def pipeline(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """`transformers.pipeline` on the CPU in float32, with the processors that are in the folder."""
    tokenizer = any(folder.glob("tokenizer*")) or (folder / "vocab.json").is_file()
    made = transformers.pipeline(
        task,
        model=model,
        image_processor=transformers.AutoImageProcessor.from_pretrained(folder),
        tokenizer=transformers.AutoTokenizer.from_pretrained(folder) if tokenizer else None,
        device="cpu",
        dtype=torch.float32,
    )
    return lambda inputs, parameters: made(inputs, **parameters)


@dataclass(frozen=True)
class VisionTaskCase:
    """`processor` is an image processor of the PIL backend; calls name pictures of `pictures.files()`. `store` writes weights that
    the rule does not give; `generation` is what `generation_config.json` says, if there is one."""

    path: str
    task: str
    model_class: str
    config: PreTrainedConfig
    processor: Any
    calls: tuple[Call, ...]
    notes: str = ""
    tokenizer: PreTrainedTokenizerBase | None = None
    answers: Answers = pipeline
    store: Store | None = None
    generation: Mapping[str, Any] | None = None
    attention: str | dict[str, str] = "eager"

    def make(self) -> Files:
        model, parameters = ruled_model(self.model_class, self.config, attention=self.attention)
        named = {name for call in self.calls for name in names(call.inputs)}
        shown = {name: data for name, data in pictures.files().items() if name in named}
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            save_config(model, folder)
            if self.generation is not None:
                model.generation_config = transformers.GenerationConfig(**self.generation)
                model.generation_config.save_pretrained(folder)
            self.processor.save_pretrained(folder)
            if self.store:
                self.store(model, folder)
                parameters = {}
            if self.tokenizer:
                self.tokenizer.save_pretrained(folder)
            files = folder_files(folder) | shown
            for name, data in shown.items():
                (folder / name).write_bytes(data)
            answer = self.answers(self.task, model, folder)
            calls = [self.record(call, answer, folder, model) for call in self.calls]
        files["task.json"] = task_json(self.task, self.model_class, calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}

    def record(self, call: Call, answer: Answer, folder: Path, model: PreTrainedModel) -> dict[str, Any]:
        """A call with its answer, and by how much that was the model's choice."""
        given = json.loads(json.dumps([call.inputs, dict(call.parameters)]))
        with margin(model) as seen:
            output = answer(placed(given[0], folder), json.loads(json.dumps(given[1])))
        refuse_close_scores(output)
        output = named(output, folder)
        return {"inputs": given[0], "parameters": given[1], "output": output} | chosen(seen, output)


def names(inputs: Any) -> list[str]:
    """The texts of a call, among them the names of files."""
    if isinstance(inputs, str):
        return [inputs]
    return [name for item in (inputs.values() if isinstance(inputs, dict) else inputs) for name in names(item)]


def placed(inputs: Any, folder: Path) -> Any:
    """The inputs with paths for the names of files."""
    if isinstance(inputs, str):
        return str(folder / inputs) if inputs in pictures.files() else inputs
    if isinstance(inputs, dict):
        return {name: placed(item, folder) for name, item in inputs.items()}
    return [placed(item, folder) for item in inputs]


def named(output: Any, folder: Path) -> Any:
    """An answer with names for paths."""
    if isinstance(output, str):
        return output.removeprefix(f"{folder}/")
    if isinstance(output, dict):
        return {name: named(item, folder) for name, item in output.items()}
    return [named(item, folder) for item in output] if isinstance(output, list) else output
