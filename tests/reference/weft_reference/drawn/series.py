"""Models of time series drawn at random."""

from __future__ import annotations

from random import Random

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, store
from weft_reference.models.patchtst import observed, series


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


DRAWN = {"patchtsmixer": patchtsmixer, "patchtst": patchtst}
