"""PatchTSMixer: every head and pooling, mixed channels, attention, gates, both norms, chosen channels, values not observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.models.patchtst import observed, rows, series
from weft_reference.series_tasks import SeriesTaskCase
from weft_reference.tasks import Call

TINY: dict[str, Any] = {
    "num_input_channels": 3,
    "context_length": 17,
    "prediction_length": 5,
    "patch_length": 4,
    "patch_stride": 3,
    "num_layers": 2,
    "d_model": 12,
    "expansion_factor": 3,
}


def goldens() -> Iterator[Case | SeriesTaskCase]:
    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = transformers.PatchTSMixerConfig(**(TINY | changes))
        return Case(f"patchtsmixer/{name}", f"PatchTSMixer{suffix}", config, inputs, notes)

    whole, partly = series(), series() | {"observed_mask": observed()["past_observed_mask"]}
    classes, attention = "ForTimeSeriesClassification", {"self_attn": True, "self_attn_heads": 3, "use_positional_encoding": True}
    yield case("base", "Model", "Patches that overlap, the first value left out; values not observed.", partly)
    yield case("channels", "Model", "Channels are mixed; batches are normalised.", whole, mode="mix_channel", norm_mlp="BatchNorm")
    yield case("attention", "Model", "Self-attention and positions.", whole, **attention)
    yield case("plain", "Model", "Neither gated nor scaled.", partly, gated_attn=False, scaling=None)
    yield case("forecast", "ForPrediction", "A forecast of all channels.", partly)
    yield case("forecast-channels", "ForPrediction", "Of two channels; scaled by the mean.", whole, prediction_channel_indices=[2, 0], scaling="mean")
    yield case("classes", classes, "Three classes by the largest.", whole)
    yield case("classes-last", classes, "By the last patch; not scaled.", whole, head_aggregation="use_last", scaling=None)
    yield case("classes-mean", classes, "By the mean; channels are mixed.", whole, head_aggregation="avg_pool", mode="mix_channel")
    yield case("regression", "ForRegression", "By all patches, in a range.", whole, head_aggregation=None, output_range=[-1.0, 2.5])
    stored = case("file", "ForPrediction", "model.safetensors as written.", whole, **attention)
    yield Case(**{**stored.__dict__, "store": stores.whole})
    calls = (Call(rows(20)), Call(rows(17, missing=True)))
    yield SeriesTaskCase("patchtsmixer/tasks/forecast", "PatchTSMixerForPrediction", transformers.PatchTSMixerConfig(**TINY), calls, "The last values are read; some are missing.")
