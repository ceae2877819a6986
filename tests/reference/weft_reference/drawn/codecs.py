"""Neural audio codecs drawn at random."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import EPSILONS, store
from weft_reference.models import codecs
from weft_reference.weights import values


def encodec(rng: Random, path: str) -> Case:
    causal, samples = rng.random() < 0.6, rng.randint(3, 200)
    config = transformers.EncodecConfig(
        target_bandwidths=[rng.choice((10.0, 24.0)), 40.0],
        sampling_rate=8000,
        audio_channels=rng.randint(1, 2),
        normalize=rng.random() < 0.5,
        hidden_size=rng.randint(4, 12),
        num_filters=2 * rng.randint(1, 4),
        num_residual_layers=rng.randint(0, 2),
        upsampling_ratios=[rng.randint(1, 5) for _ in range(rng.randint(1, 3))],
        norm_type=rng.choice(("weight_norm", "time_group_norm")),
        kernel_size=rng.randint(1, 9),
        last_kernel_size=rng.randint(1, 9),
        residual_kernel_size=rng.randint(1, 5),
        dilation_growth_rate=rng.randint(1, 3),
        use_causal_conv=causal,
        pad_mode=rng.choice(("reflect", "reflect", "constant", "replicate")),
        compress=rng.randint(1, 2),
        num_lstm_layers=rng.randint(1, 3),
        trim_right_ratio=rng.choice((1.0, 0.5, 0.0)) if causal else 1.0,
        codebook_size=rng.choice((8, 16, 64)),
        use_conv_shortcut=rng.random() < 0.5,
    )
    mask = np.ones((2, samples), np.int64)
    mask[1, samples - rng.randint(0, samples // 3) :] = 0
    inputs = {"input_values": values(f"{path}.waves", (2, config.audio_channels, samples)), "padding_mask": mask}
    return Case(path, "EncodecModel", config, inputs, "Drawn at random.", store(rng))


def mimi(rng: Random, path: str) -> Case:
    heads, groups = rng.choice((1, 2, 4)), rng.randint(1, 2)
    width = 4 * heads * rng.randint(1, 2)
    ratios = [rng.randint(2, 4) for _ in range(rng.randint(1, 2))]
    config = transformers.MimiConfig(
        sampling_rate=1600,
        hidden_size=width,
        num_filters=2 * rng.randint(1, 4),
        num_residual_layers=rng.randint(0, 2),
        upsampling_ratios=ratios,
        kernel_size=rng.randint(1, 9),
        last_kernel_size=rng.randint(1, 5),
        residual_kernel_size=rng.randint(1, 5),
        use_causal_conv=rng.random() < 0.7,
        pad_mode=rng.choice(("constant", "constant", "reflect", "replicate")),
        codebook_size=rng.choice((8, 16, 64)),
        codebook_dim=6,
        vector_quantization_hidden_dimension=6,
        num_quantizers=rng.randint(3, 6),
        num_semantic_quantizers=rng.randint(1, 2),
        use_conv_shortcut=rng.random() < 0.5,
        upsample_groups=rng.choice((1, groups, width)),
        num_hidden_layers=rng.randint(1, 3),
        intermediate_size=rng.randint(8, 40),
        num_attention_heads=heads,
        num_key_value_heads=rng.choice((1, heads)),
        sliding_window=rng.randint(1, 12),
        attention_bias=rng.random() < 0.5,
    )
    inputs = {"input_values": values(f"{path}.waves", (2, 1, rng.randint(20, 200)))}
    without = ("encoder_past", "decoder_past")
    return Case(path, "MimiModel", config, inputs, "Drawn at random.", store(rng), without=without)


def pocket_tts(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    width = 4 * heads * rng.randint(1, 2)
    config = transformers.PocketTTSAudioTokenizerConfig(
        hidden_size=width,
        num_filters=2 * rng.randint(1, 4),
        num_residual_layers=rng.randint(0, 2),
        upsampling_ratios=[rng.randint(2, 4) for _ in range(rng.randint(1, 2))],
        kernel_size=rng.randint(1, 9),
        last_kernel_size=rng.randint(1, 5),
        upsample_groups=rng.choice((1, width)),
        num_hidden_layers=rng.randint(1, 3),
        intermediate_size=rng.randint(8, 40),
        num_attention_heads=heads,
        num_key_value_heads=rng.choice((1, heads)),
        sliding_window=rng.randint(1, 12),
        latent_stride=rng.randint(2, 4),
        latent_dim=rng.randint(2, 9),
    )
    inputs = {"input_values": values(f"{path}.waves", (2, 1, rng.randint(20, 200)))}
    return Case(path, "PocketTTSAudioTokenizerModel", config, inputs, "Drawn at random.", store(rng))


def vibevoice(rng: Random, path: str) -> Case:
    ratios = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    config = transformers.VibeVoiceAcousticTokenizerConfig(
        channels=rng.randint(1, 2),
        hidden_size=rng.randint(3, 12),
        kernel_size=rng.randint(1, 7),
        num_filters=rng.randint(2, 6),
        downsampling_ratios=ratios,
        depths=[rng.randint(1, 3) for _ in range(len(ratios) + 1)],
        ffn_expansion=rng.randint(1, 4),
        rms_norm_eps=rng.choice(EPSILONS),
    )
    shape = (2, config.channels, int(np.prod(ratios)) * rng.randint(1, 6))
    inputs = {"input_values": values(f"{path}.sounds", shape)}
    name, notes = "VibeVoiceAcousticTokenizerModel", "Drawn at random."
    return Case(path, name, config, inputs, notes, store(rng), forward={"sample": False})


def xcodec(rng: Random, path: str) -> Case:
    strides = rng.choice(((4, 2), (2, 2, 2), (3, 2), (2, 5), (2, 4)))
    acoustic = {
        "encoder_hidden_size": rng.randint(1, 5),
        "downsampling_ratios": list(strides),
        "decoder_hidden_size": 2 ** len(strides) * rng.randint(1, 3),
        "upsampling_ratios": rng.sample(strides, len(strides)),
        "hidden_size": rng.randint(2, 9),
    }
    # The semantic model's strides are those of the acoustic one but for the last, which its encoder has.
    outer = strides[-1] == 2 and rng.random() < 0.5
    inner = list(strides[:-1]) if outer else list(strides)
    blocks = rng.randint(0 if outer else 1, 2)
    heads = rng.choice((1, 2))
    width = 4 * heads
    semantic = {
        "model_type": rng.choice(("hubert", "wavlm")),
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_hidden_layers": rng.randint(1, 3),
        "conv_dim": [6] * len(inner),
        "conv_stride": inner,
        "conv_kernel": inner,
        "conv_bias": rng.random() < 0.5,
        "feat_extract_norm": rng.choice(("group", "layer")),
        "do_stable_layer_norm": rng.random() < 0.5,
        "num_conv_pos_embeddings": rng.randint(2, 6),
    }
    changes = {
        "strides": [1] * blocks + [strides[-1]] * outer,
        "channel_ratios": [rng.choice((1, 2)) for _ in range(blocks)] + [1] * outer,
        "block_dilations": [rng.randint(1, 3) for _ in range(rng.randint(0, 2))],
        "kernel_size": rng.choice((1, 3, 5)),
        "unit_kernel_size": rng.choice((1, 3)),
        "codebook_size": rng.choice((8, 16, 20)),
    }
    if blocks and not outer:
        changes["channel_ratios"][-1] = 1
    hop = int(np.prod(strides))
    samples = hop * rng.randint(4, 9) + (0 if outer or 3 in strides or 5 in strides else rng.randint(0, hop - 1))
    case = codecs.xcodec(path, "Drawn at random.", samples, acoustic, semantic, **changes)
    return replace(case, store=store(rng))


def xcodec2(prefix: str, rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    width = 4 * rng.randint(1, 3)
    ratios = [rng.randint(2, 4) for _ in range(rng.randint(1, 3))]
    changes = {
        "num_hidden_layers": rng.randint(0, 3),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": 2 * rng.randint(1, 6),
        "intermediate_size": rng.randint(4, 40),
        "hidden_act": rng.choice(("silu", "gelu", "relu")),
        "rms_norm_eps": rng.choice(EPSILONS),
        "attention_bias": rng.random() < 0.5,
        "encoder_hidden_size": rng.randint(1, 4),
        "downsampling_ratios": ratios,
        "quantization_dim": 32 + width,
        "quantization_levels": [rng.randint(2, 6) for _ in range(rng.randint(1, 4))],
    }
    if prefix == "NeuCodec":
        changes |= {"input_sampling_rate": 8000, "output_sampling_rate": rng.choice((8000, 16000) if np.prod(ratios) % 2 else (8000, 12000, 16000))}
    semantic = {
        "hidden_size": width,
        "num_attention_heads": rng.choice((1, 2)),
        "num_hidden_layers": rng.randint(1, 2),
        "position_embeddings_type": rng.choice(("relative_key", None)),
        "conv_depthwise_kernel_size": rng.choice((1, 3, 5)),
    }
    hop, frames = int(np.prod(ratios)), rng.randint(2, 9)
    more = rng.randint(-1, 1) if prefix == "NeuCodec" else 0
    made = codecs.xcodec2(
        path, prefix, "Drawn at random.", hop * frames, frames + more, rng.random() < 0.6, semantic, **changes
    )
    return replace(made, store=store(rng))


DRAWN = {
    "encodec": encodec,
    "mimi": mimi,
    "pocket_tts_audio_tokenizer": pocket_tts,
    "vibevoice_acoustic_tokenizer": vibevoice,
    "xcodec": xcodec,
    "xcodec2": partial(xcodec2, "Xcodec2"),
    "neucodec": partial(xcodec2, "NeuCodec"),
}
