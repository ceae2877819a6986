"""A task golden: a tiny checkpoint with a tokenizer, and what `transformers.pipeline` answers to each call.

The folder holds the checkpoint as it would be published (weights by the rule) and `task.json` with the calls:
inputs and parameters as given to the pipeline, output as it returned them (arrays as nested lists).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from weft_reference.cases import rewrite, ruled_model, save_config, versions
from weft_reference.files import Files, folder_files, to_json
from weft_reference.margins import Margin, margin

# Two scores closer than this could swap places in another implementation that is just as right.
TOO_CLOSE = 2e-6


@dataclass(frozen=True)
class Call:
    inputs: Any
    parameters: Mapping[str, Any] = field(default_factory=dict)


Answer = Callable[[Any, dict[str, Any]], Any]
Answers = Callable[[str, PreTrainedModel, PreTrainedTokenizerBase], Answer]


def pipeline(task: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Answer:
    """`transformers.pipeline` on the CPU in float32."""
    made = transformers.pipeline(task, model=model, tokenizer=tokenizer, device="cpu", dtype=torch.float32)
    return lambda inputs, parameters: made(inputs, **parameters)


@dataclass(frozen=True)
class TaskCase:
    """`answers` makes the function that answers calls: the pipeline unless the release has none for the task.

    `generation` is what `generation_config.json` says, if there is one; `written` as of a `Case`.
    """

    path: str
    task: str
    model_class: str
    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerBase
    calls: tuple[Call, ...]
    notes: str = ""
    answers: Answers = pipeline
    generation: Mapping[str, Any] | None = None
    written: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Files:
        model, parameters = ruled_model(self.model_class, self.config)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            save_config(model, folder)
            rewrite(folder / "config.json", self.written)
            if self.generation is not None:
                model.generation_config = transformers.GenerationConfig(**self.generation)
                model.generation_config.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            files = folder_files(folder)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        answer = self.answers(self.task, model, tokenizer)
        calls = [record(call, answer, model) for call in self.calls]
        files["task.json"] = task_json(self.task, self.model_class, calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}


def record(call: Call, answer: Answer, model: PreTrainedModel | None = None) -> dict[str, Any]:
    """A call with its answer, and by how much that was the model's choice."""
    given = json.loads(json.dumps([call.inputs, dict(call.parameters)]))
    with margin(model) if model is not None else nullcontext() as seen:
        output = answer(*json.loads(json.dumps(given)))
    refuse_close_scores(output)
    return {"inputs": given[0], "parameters": given[1], "output": output} | chosen(seen, output)


def chosen(seen: Margin | None, output: Any) -> dict[str, float]:
    """The margin of an answer, where something was chosen."""
    if seen is None:
        return {}
    seen.answer(output)
    least = seen.rounded()
    return {} if least is None else {"margin": least}


def task_json(
    task: str, model_class: str, calls: list[dict[str, Any]], parameters: dict[str, list[int]], notes: str
) -> bytes:
    return to_json(
        {
            "format": 1,
            "task": task,
            "class": model_class,
            "reference": versions(),
            "notes": notes,
            "calls": calls,
            "parameters": parameters,
        }
    )


def refuse_close_scores(output: Any) -> None:
    """Rejects an answer whose order hangs on the last bits of two scores."""
    if isinstance(output, dict):
        for value in output.values():
            refuse_close_scores(value)
    elif isinstance(output, list):
        scores = [float(item["score"]) for item in output if isinstance(item, dict) and item.get("score") is not None]
        ranked = len(scores) > 1 and all(a >= b for a, b in zip(scores, scores[1:]))
        if ranked and any(0 < a - b < TOO_CLOSE * max(abs(a), abs(b)) for a, b in zip(scores, scores[1:])):
            raise ValueError(f"scores too close to order: {scores}; choose another input")
        for item in output:
            refuse_close_scores(item)
