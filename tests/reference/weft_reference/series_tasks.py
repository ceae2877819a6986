"""A task golden of time series: no pipeline of the reference forecasts, so the answer is what the class gives.

Inputs are a list of numbers, or of lists with a number for each channel, null where a value is missing.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.cases import ruled_model, save_config
from weft_reference.files import Files, folder_files
from weft_reference.tasks import Call, record, task_json

TASK = "time-series-forecasting"


@dataclass(frozen=True)
class SeriesTaskCase:
    path: str
    model_class: str
    config: PreTrainedConfig
    calls: tuple[Call, ...]
    notes: str = ""

    def make(self) -> Files:
        model, parameters = ruled_model(self.model_class, self.config)
        with tempfile.TemporaryDirectory() as temporary:
            save_config(model, Path(temporary))
            files = folder_files(Path(temporary))
        calls = [record(call, lambda inputs, given: forecast(model, inputs, given)) for call in self.calls]
        files["task.json"] = task_json(TASK, self.model_class, calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}


def forecast(model: PreTrainedModel, inputs: Any, given: dict[str, Any]) -> dict[str, Any]:
    rows = [row if isinstance(row, list) else [row] for row in inputs]
    series = torch.tensor([[float("nan") if value is None else value for value in row] for row in rows])
    if model.config.model_type.startswith("timesfm"):
        channels = list(series.T)
        freq = {"freq": [given["freq"]] * len(channels)} if "freq" in given else {}
        made = model(past_values=channels, **freq)
        full = made.full_predictions.permute(1, 0, 2)
        levels = enumerate(model.config.quantiles, start=1)
        quantiles = {str(level): listed(full[..., index]) for index, level in levels}
        return {"mean": listed(made.mean_predictions.T), "quantiles": quantiles}
    last = series[None, -model.config.context_length :]
    observed = ~last.isnan()
    name = "past_observed_mask" if model.config.model_type == "patchtst" else "observed_mask"
    made = model(past_values=last.nan_to_num(0.0), **{name: observed})
    return {"mean": listed(made.prediction_outputs[0])}


def listed(values: torch.Tensor) -> list[Any]:
    """A number for each time, or where there are several channels a list of them."""
    return values[:, 0].tolist() if values.shape[1] == 1 else values.tolist()
