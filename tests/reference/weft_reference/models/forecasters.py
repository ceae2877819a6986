"""Time Series Transformer and Autoformer: every distribution and scaling, static and dynamic features, several variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats, integers

MODELS = ("time_series_transformer", "autoformer")
TINY: dict[str, Any] = {
    "prediction_length": 5,
    "context_length": 13,
    "lags_sequence": [1, 2, 4],
    "num_time_features": 2,
    "d_model": 12,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 10,
    "decoder_ffn_dim": 14,
}
OWN: dict[str, dict[str, Any]] = {
    "time_series_transformer": {},
    "autoformer": {"label_length": 4, "moving_average": 5, "autocorrelation_factor": 2},
}
STATIC = {
    "num_static_categorical_features": 2,
    "cardinality": [5, 3],
    "embedding_dimension": [4, 2],
    "num_static_real_features": 2,
    "num_dynamic_real_features": 1,
}


def series(model: str, config: Any, batch: int = 2, key: str = "series", missing: bool = True) -> dict[str, Any]:
    """Inputs, and what Autoformer alone does not read."""
    past, horizon = config.context_length + max(config.lags_sequence), config.prediction_length
    axis = () if config.input_size == 1 else (config.input_size,)
    times = config.num_time_features + config.num_dynamic_real_features
    levels = np.linspace(1.0, 9.0, batch, dtype=np.float32).reshape(batch, *[1] * (1 + len(axis)))
    whole = floats(key, (batch, past + horizon, *axis), -2.0, 2.0) + levels
    if config.distribution_output == "negative_binomial":
        whole = np.abs(whole).round()
    given = {"past_values": whole[:, :past]}
    if missing:
        mask = integers(f"{key}.observed", (batch, past, *axis), 0, 4) > 0
        mask[0, -config.context_length :] |= axis == ()
        given["past_observed_mask"] = mask
    if times:
        given["past_time_features"] = floats(f"{key}.past", (batch, past, times))
        given["future_time_features"] = floats(f"{key}.future", (batch, horizon, times))
    if config.num_static_categorical_features:
        columns = [integers(f"{key}.{rows}", (batch, 1), 0, rows) for rows in config.cardinality]
        given["static_categorical_features"] = np.concatenate(columns, axis=1)
    if config.num_static_real_features:
        given["static_real_features"] = floats(f"{key}.static", (batch, config.num_static_real_features))
    told = {"future_values": whole[:, past:]}
    if not missing:
        told["past_observed_mask"] = np.ones_like(given["past_values"], dtype=bool)
    if not times:
        told["past_time_features"] = np.zeros((batch, past, 0), np.float32)
        told["future_time_features"] = np.zeros((batch, horizon, 0), np.float32)
    if model == "time_series_transformer":
        given["future_values"] = told.pop("future_values")
    return {"inputs": given, "told": told}


def goldens() -> Iterator[Case]:
    for model, classes in zip(MODELS, ("TimeSeriesTransformer", "Autoformer")):

        def case(name: str, suffix: str, notes: str, missing: bool = True, store: Any = None, **changes: Any) -> Case:
            config = getattr(transformers, f"{classes}Config")(**(TINY | OWN[model] | changes))
            given = series(model, config, key=name, missing=missing)
            return Case(f"{model}/{name}", f"{classes}{suffix}", config, notes=notes, store=store, **given)

        yield case("base", "Model", "Values that were not observed; scaled by the mean.")
        yield case("prediction", "ForPrediction", "Student's t-distribution.", missing=False)
        yield case("static", "ForPrediction", "Static and dynamic features; the normal distribution.", **STATIC, distribution_output="normal", scaling="std")
        several = {"input_size": 3, "distribution_output": "negative_binomial", "scaling": "mean"}
        yield case("several", "ForPrediction", "Several variables; the negative binomial distribution.", **several)
        yield case("several-base", "Model", "Several variables, scaled by the deviation.", input_size=2, scaling="std")
        one = {"num_static_categorical_features": 1, "cardinality": [7], "num_time_features": 0}
        yield case("unscaled", "Model", "No scaling, no features of times; a category of derived width.", scaling=False, **one)
        yield case("true", "ForPrediction", "Scaling that is said by a truth value; as long as predictions.", scaling=True, context_length=None)
        yield case("file", "ForPrediction", "model.safetensors as save_pretrained writes it.", store=stores.whole, activation_function="relu")
    config = {"context_length": 4, "prediction_length": 9, "label_length": 4, "moving_average": 3}
    made = transformers.AutoformerConfig(**(TINY | config))
    notes = "More values are predicted than read: keys are filled up with zeros."
    yield Case("autoformer/long", "AutoformerForPrediction", made, notes=notes, **series("autoformer", made, 3))
