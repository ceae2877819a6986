"""PatchTST: every head and pooling, class tokens, both norms in both places, channels that attend, values not observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats, integers
from weft_reference.series_tasks import SeriesTaskCase
from weft_reference.tasks import Call

TINY: dict[str, Any] = {
    "num_input_channels": 3,
    "context_length": 17,
    "prediction_length": 5,
    "patch_length": 4,
    "patch_stride": 3,
    "num_hidden_layers": 2,
    "d_model": 12,
    "num_attention_heads": 3,
    "ffn_dim": 10,
}


def series(context: int = 17, channels: int = 3, batch: int = 2, key: str = "series") -> dict[str, np.ndarray]:
    """Channels of other heights and ranges."""
    levels = np.linspace(-3.0, 8.0, channels, dtype=np.float32)
    return {"past_values": floats(key, (batch, context, channels), -2.0, 2.0) * (1 + np.abs(levels)) + levels}


def observed(context: int = 17, channels: int = 3, batch: int = 2) -> dict[str, np.ndarray]:
    """Some values are missing, and of the last channel of the first item all."""
    mask = integers("observed", (batch, context, channels), 0, 4) > 0
    mask[0, :, -1] = False
    return {"past_observed_mask": mask}


def rows(length: int, missing: bool = False) -> list[list[float | None]]:
    """A series as JSON has it."""
    made: list[list[float | None]] = series(length, batch=1, key="rows")["past_values"][0].round(3).tolist()
    if missing:
        made[-2][1] = made[3][0] = None
    return [[value if value is None else round(value, 3) for value in row] for row in made]


def goldens() -> Iterator[Case | SeriesTaskCase]:
    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = transformers.PatchTSTConfig(**(TINY | changes))
        return Case(f"patchtst/{name}", f"PatchTST{suffix}", config, inputs, notes)

    whole, partly = series(), series() | observed()
    yield case("base", "Model", "Patches that overlap, the first value left out; values not observed.", partly)
    other = {"norm_type": "layernorm", "pre_norm": False, "bias": False, "activation_function": "relu"}
    yield case("layer-norm", "Model", "Layer normalisation after the sums; no biases.", whole, **other)
    token = {"use_cls_token": True, "share_embedding": False, "channel_attention": True}
    yield case("class-token", "Model", "A class token, a projection for each channel, channels that attend.", whole, **token)
    yield case("mean-scaling", "Model", "Scaled by the mean; a channel without values.", partly, scaling="mean")
    yield case("unscaled", "Model", "Not scaled.", partly, scaling=None)
    yield case("forecast", "ForPrediction", "A forecast of the mean of all patches.", partly)
    yield case("forecast-max", "ForPrediction", "Of the largest; scaled by the mean.", whole, pooling_type="max", scaling="mean")
    yield case("forecast-all", "ForPrediction", "Of all patches side by side.", whole, pooling_type=None)
    yield case("forecast-token", "ForPrediction", "Of the class token.", whole, **token)
    yield case("classes", "ForClassification", "Four classes.", whole, num_targets=4)
    yield case("classes-max", "ForClassification", "Four classes, after norms.", whole, num_targets=4, pooling_type="max", **other)
    yield case("regression", "ForRegression", "Two targets.", partly, num_targets=2)
    yield case("regression-range", "ForRegression", "Targets in a range.", whole, num_targets=2, output_range=[-1.0, 3.0], **token)
    stored = case("file", "ForPrediction", "model.safetensors as written.", whole)
    yield Case(**{**stored.__dict__, "store": stores.whole})
    calls = (Call(rows(20)), Call(rows(17, missing=True)))
    yield SeriesTaskCase("patchtst/tasks/forecast", "PatchTSTForPrediction", transformers.PatchTSTConfig(**TINY), calls, "The last values are read; some are missing.")
