"""TimesFM and TimesFM 2.5: padding of some patches and of all but a few values, positions, frequencies, forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.models.patchtst import rows, series
from weft_reference.series_tasks import SeriesTaskCase
from weft_reference.tasks import Call

TINY: dict[str, Any] = {
    "patch_length": 4,
    "context_length": 20,
    "horizon_length": 6,
    "freq_size": 3,
    "num_hidden_layers": 2,
    "hidden_size": 24,
    "intermediate_size": 20,
    "head_dim": 6,
    "num_attention_heads": 3,
    "quantiles": [0.1, 0.5, 0.8],
}


MODELS = ("timesfm", "timesfm2_5")
NEWER: dict[str, Any] = {name: value for name, value in TINY.items() if name != "freq_size"} | {
    "num_attention_heads": 4, "num_key_value_heads": 2, "output_quantile_len": 8, "decode_index": 2,
    "max_position_embeddings": 64,
}


def values(context: int = 20, batch: int = 3, key: str = "series") -> dict[str, np.ndarray]:
    return {"past_values": np.ascontiguousarray(series(context, batch, 1, key)["past_values"][0].T)}


def padded(context: int = 20, batch: int = 3) -> dict[str, np.ndarray]:
    """The first series whole, the second from within a patch, the others with two values."""
    starts = np.array([0, 6, *([context - 2] * batch)])[:batch]
    return {"past_values_padding": (np.arange(context)[None] < starts[:, None]).astype(np.int64)}


def goldens() -> Iterator[Case | SeriesTaskCase]:
    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = transformers.TimesFmConfig(**(TINY | changes))
        return Case(f"timesfm/{name}", f"TimesFm{suffix}", config, inputs, notes)

    freq = {"freq": np.array([[0], [2], [1]], np.int64)}
    whole = values() | padded() | freq
    yield case("base", "Model", "Series of three lengths and frequencies.", whole)
    yield case("positions", "Model", "Position embeddings, counted from the first patch with values.", whole, use_positional_embedding=True)
    marked = values() | padded() | freq
    marked["past_values"][0, 5] = 1000.0
    yield case("marked", "Model", "A value that marks padding; values count as equal within a tenth.", marked, pad_val=1000.0, tolerance=0.1)
    yield case("forecast", "ModelForPrediction", "Mean and quantiles of the forecast.", values() | freq)
    stored = case("file", "ModelForPrediction", "model.safetensors as written.", values(), use_positional_embedding=True)
    yield Case(**{**stored.__dict__, "store": stores.whole})
    one = [row[0] for row in rows(9)]
    calls = (Call(one), Call(rows(30), {"freq": 1}))
    config = transformers.TimesFmConfig(**TINY)
    notes = "A short series of one channel, and a long one of three, each forecast by itself."
    yield SeriesTaskCase("timesfm/tasks/forecast", "TimesFmModelForPrediction", config, calls, notes)
    yield from newer()


def newer() -> Iterator[Case | SeriesTaskCase]:
    """TimesFM 2.5."""

    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = transformers.TimesFm2_5Config(**(NEWER | changes))
        return Case(f"timesfm2_5/{name}", f"TimesFm2_5{suffix}", config, inputs, notes)

    above = {"past_values": np.abs(values()["past_values"]) * np.float32(0.1)}
    yield case("base", "Model", "Series of three lengths.", values() | padded())
    yield case("bias", "Model", "Biases, another activation.", values() | padded(), use_bias=True, attention_bias=True, activation="gelu")
    yield case("forecast", "ModelForPrediction", "Values on both sides of 0.", values())
    yield case("above-zero", "ModelForPrediction", "No value is below 0, nor what is forecast.", above)
    plain = {"force_flip_invariance": False, "infer_is_positive": False, "use_continuous_quantile_head": False}
    yield case("plain", "ModelForPrediction", "Of the series alone, quantiles as they are, below 0 too.", above, **plain)
    yield case("short-quantiles", "ModelForPrediction", "Quantiles of their own for the first values alone.", values(), output_quantile_len=4, decode_index=9)
    calls = (Call([row[0] for row in rows(9)]), Call(rows(30)))
    config = transformers.TimesFm2_5Config(**NEWER)
    notes = "A short series of one channel, and a long one of three."
    yield SeriesTaskCase("timesfm2_5/tasks/forecast", "TimesFm2_5ModelForPrediction", config, calls, notes)
