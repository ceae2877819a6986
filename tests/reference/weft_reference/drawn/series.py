"""Models of time series drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, store
from weft_reference.models import forecasters
from weft_reference.models.decision_transformer import episodes
from weft_reference.models.patchtst import observed, series
from weft_reference.models.timesfm import values


def patchtst(rng: Random, path: str) -> Case:
    head = rng.choice(("Model", "ForPrediction", "ForPrediction", "ForClassification", "ForRegression"))
    heads, patch = rng.choice((1, 2, 3)), rng.randint(1, 8)
    context, channels = patch + rng.randint(1, 40), rng.randint(1, 5)
    pooling = ("mean", "max", None) if head == "ForPrediction" else ("mean", "max")
    config = transformers.PatchTSTConfig(
        num_input_channels=channels,
        context_length=context,
        prediction_length=rng.randint(1, 20),
        patch_length=patch,
        patch_stride=rng.randint(1, patch),
        num_hidden_layers=rng.randint(1, 4),
        d_model=2 * heads * rng.randint(1, 8),
        num_attention_heads=heads,
        ffn_dim=rng.randint(4, 40),
        share_embedding=rng.random() < 0.6,
        channel_attention=rng.random() < 0.4,
        norm_type=rng.choice(("batchnorm", "layernorm")),
        bias=rng.random() < 0.7,
        activation_function=rng.choice(ACTIVATIONS),
        pre_norm=rng.random() < 0.6,
        use_cls_token=rng.random() < 0.4,
        scaling=rng.choice(("std", "mean", None)),
        pooling_type=rng.choice(pooling),
        num_targets=rng.randint(1, 5),
        output_range=rng.choice((None, [-2.0, 5.0])),
    )
    batch = rng.randint(1, 4)
    inputs = series(context, channels, batch, f"{path}.{rng.random()}")
    if rng.random() < 0.5:
        inputs |= observed(context, channels, batch)
    return Case(path, f"PatchTST{head}", config, inputs, "Drawn at random.", store(rng))


def patchtsmixer(rng: Random, path: str) -> Case:
    head = rng.choice(("Model", "ForPrediction", "ForPrediction", "ForTimeSeriesClassification", "ForRegression"))
    heads, patch = rng.choice((1, 2, 3)), rng.randint(1, 8)
    context, channels = patch + rng.randint(1, 40), rng.randint(1, 5)
    config = transformers.PatchTSMixerConfig(
        num_input_channels=channels,
        context_length=context,
        prediction_length=rng.randint(1, 20),
        patch_length=patch,
        patch_stride=rng.randint(1, patch),
        num_layers=rng.randint(1, 4),
        d_model=2 * heads * rng.randint(1, 8),
        expansion_factor=rng.randint(1, 4),
        mode=rng.choice(("common_channel", "mix_channel")),
        gated_attn=rng.random() < 0.7,
        norm_mlp=rng.choice(("LayerNorm", "BatchNorm")),
        self_attn=rng.random() < 0.5,
        self_attn_heads=heads,
        use_positional_encoding=rng.random() < 0.5,
        scaling=rng.choice(("std", "mean", None)),
        prediction_channel_indices=rng.choice((None, [channels - 1])),
        num_targets=rng.randint(1, 5),
        output_range=rng.choice((None, [-2.0, 5.0])),
        head_aggregation=rng.choice(("max_pool", "avg_pool", "use_last", None)),
    )
    batch = rng.randint(1, 4)
    inputs = series(context, channels, batch, f"{path}.{rng.random()}")
    if head in ("Model", "ForPrediction") and rng.random() < 0.5:
        inputs["observed_mask"] = observed(context, channels, batch)["past_observed_mask"]
    return Case(path, f"PatchTSMixer{head}", config, inputs, "Drawn at random.", store(rng))


def timesfm(rng: Random, path: str) -> Case:
    head = rng.choice(("Model", "ModelForPrediction"))
    patch = rng.randint(3, 8)
    context, batch = patch * rng.randint(1, 6), rng.randint(1, 4)
    config = transformers.TimesFmConfig(
        patch_length=patch,
        context_length=context,
        horizon_length=rng.randint(1, 20),
        freq_size=3,
        num_hidden_layers=rng.randint(1, 4),
        hidden_size=2 * rng.randint(3, 20),
        intermediate_size=rng.randint(4, 40),
        head_dim=rng.randint(2, 9),
        num_attention_heads=rng.randint(1, 4),
        rms_norm_eps=rng.choice((1e-6, 1e-5)),
        quantiles=sorted(rng.random() for _ in range(rng.randint(1, 9))),
        use_positional_embedding=rng.random() < 0.5,
    )
    inputs = values(context, batch, f"{path}.{rng.random()}")
    inputs["freq"] = np.array([[rng.randrange(3)] for _ in range(batch)], np.int64)
    if head == "Model":
        starts = np.array([rng.randrange(context) for _ in range(batch)])
        inputs["past_values_padding"] = (np.arange(context)[None] < starts[:, None]).astype(np.int64)
    return Case(path, f"TimesFm{head}", config, inputs, "Drawn at random.", store(rng))


def decision_transformer(rng: Random, path: str) -> Case:
    heads, states, actions = rng.choice((1, 2, 3)), rng.randint(1, 9), rng.randint(1, 5)
    config = transformers.DecisionTransformerConfig(
        state_dim=states,
        act_dim=actions,
        hidden_size=heads * rng.randint(2, 12),
        max_ep_len=50,
        n_positions=rng.randint(1, 60),
        n_layer=rng.randint(1, 4),
        n_head=heads,
        n_inner=rng.choice((None, 20)),
        activation_function=rng.choice(ACTIVATIONS),
        action_tanh=rng.random() < 0.6,
        scale_attn_weights=rng.random() < 0.8,
        scale_attn_by_inverse_layer_idx=rng.random() < 0.3,
    )
    batch, steps = rng.randint(1, 4), rng.randint(1, 20)
    inputs = episodes(batch, steps, states, actions, f"{path}.{rng.random()}")
    if rng.random() < 0.5:
        starts = np.array([rng.randrange(steps) for _ in range(batch)])
        inputs["attention_mask"] = (np.arange(steps)[None] >= starts[:, None]).astype(np.int64)
    return Case(path, "DecisionTransformerModel", config, inputs, "Drawn at random.", store(rng))


def forecaster(model: str, rng: Random, path: str) -> Case:
    classes = {"time_series_transformer": "TimeSeriesTransformer", "autoformer": "Autoformer"}[model]
    heads, context = rng.choice((1, 2, 3)), rng.randint(3, 24)
    categories = rng.randint(0, 2)
    drawn: dict[str, Any] = {
        "prediction_length": rng.randint(1, 12),
        "context_length": context,
        "lags_sequence": sorted(rng.sample(range(1, 9), rng.randint(1, 4))),
        "input_size": rng.choice((1, 1, 2, 3)),
        "distribution_output": rng.choice(("student_t", "normal", "negative_binomial")),
        "scaling": rng.choice(("mean", "std", True, False)),
        "num_time_features": rng.randint(1, 3),
        "num_dynamic_real_features": rng.randint(0, 2),
        "num_static_real_features": rng.randint(0, 2),
        "num_static_categorical_features": categories,
        "cardinality": [rng.randint(2, 9) for _ in range(categories)] or None,
        # Normalised states of two numbers are 1 and -1, so that delays are equally strong.
        "d_model": 2 * heads * rng.randint(3, 6),
        "encoder_layers": rng.randint(1, 3),
        "decoder_layers": rng.randint(1, 3),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": rng.randint(4, 40),
        "decoder_ffn_dim": rng.randint(4, 40),
        "activation_function": rng.choice(ACTIVATIONS),
    }
    if model == "autoformer":
        drawn |= {"label_length": rng.randint(2, context), "moving_average": rng.choice((1, 3, 5, 9))}
        drawn["autocorrelation_factor"] = rng.randint(1, 3)
    config = getattr(transformers, f"{classes}Config")(**drawn)
    given = forecasters.series(model, config, rng.randint(1, 4), f"{path}.{rng.random()}", rng.random() < 0.5)
    head = rng.choice(("Model", "ForPrediction", "ForPrediction"))
    return Case(path, classes + head, config, notes="Drawn at random.", store=store(rng), **given)


DRAWN = {
    "autoformer": partial(forecaster, "autoformer"),
    "time_series_transformer": partial(forecaster, "time_series_transformer"),
    "decision_transformer": decision_transformer,
    "timesfm": timesfm,
    "patchtsmixer": patchtsmixer,
    "patchtst": patchtst,
}
