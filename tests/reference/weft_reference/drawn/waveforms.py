"""Models of sounds drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import transformers

from weft_reference import waves
from weft_reference.cases import Case
from weft_reference.drawn.common import EPSILONS, Changes, lengths, store, texts
from weft_reference.models import pop2piano as pop2piano_cases
from weft_reference.models import speecht5 as speecht5_cases
from weft_reference.models import vits as vits_cases
from weft_reference.models.wav2vec2 import LARGE, SMALL
from weft_reference.weights import values

PREFIXES = {
    "wav2vec2": "Wav2Vec2",
    "hubert": "Hubert",
    "wavlm": "WavLM",
    "unispeech": "UniSpeech",
    "unispeech-sat": "UniSpeechSat",
    "sew": "SEW",
    "sew-d": "SEWD",
    "wav2vec2-conformer": "Wav2Vec2Conformer",
}
OWN: dict[str, Callable[[Random], Changes]] = {
    "SEW": lambda rng: {"squeeze_factor": rng.randint(1, 4), "use_weighted_layer_sum": False},
    "SEWD": lambda rng: {
        "squeeze_factor": rng.randint(1, 4),
        "use_weighted_layer_sum": False,
        "position_buckets": rng.choice((-1, 8, 12)),
        "max_position_embeddings": 40,
        "share_att_key": rng.random() < 0.5,
        "pos_att_type": rng.choice((["p2c", "c2p"], ["c2p"], ["p2c"])),
    },
    "Wav2Vec2Conformer": lambda rng: {
        "conv_depthwise_kernel_size": rng.choice((1, 3, 7)),
        "position_embeddings_type": rng.choice(("relative", "rotary", None)),
    },
}
HEADS = ("Model", "ForCTC", "ForSequenceClassification")


def heard(prefix: str, rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    groups = rng.choice((1, 2, 4))
    made: Changes = SMALL | {
        "vocab_size": rng.randint(5, 40),
        "hidden_size": 4 * heads * rng.randint(1, 5),
        "num_attention_heads": heads,
        "num_hidden_layers": rng.randint(1, 4),
        "intermediate_size": rng.randint(8, 60),
        "conv_dim": [rng.randint(4, 16) for _ in range(3)],
        "num_conv_pos_embeddings": rng.randint(2, 9),
        "num_conv_pos_embedding_groups": groups,
        "classifier_proj_size": rng.randint(4, 20),
        "num_labels": rng.randint(1, 6),
        "layer_norm_eps": rng.choice(EPSILONS),
        "use_weighted_layer_sum": rng.random() < 0.3,
    }
    if rng.random() < 0.5:
        made |= LARGE
    made |= OWN[prefix](rng) if prefix in OWN else {}
    config = getattr(transformers, f"{prefix}Config")(**made)
    samples = tuple(200 + 40 * length for length in lengths(rng, 20))
    inputs = waves.batch(f"{path}.{rng.random()}", samples, rng.random() < 0.7)
    return Case(path, prefix + rng.choice(HEADS), config, inputs, "Drawn at random.", store(rng))


def whisper(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 3))
    head = rng.choice(("Model", "ForConditionalGeneration", "ForAudioClassification"))
    config = transformers.WhisperConfig(
        vocab_size=rng.randint(30, 120),
        num_mel_bins=rng.randint(4, 20),
        d_model=heads * rng.choice((4, 6, 8)),
        encoder_layers=rng.randint(1, 4),
        encoder_attention_heads=heads,
        encoder_ffn_dim=rng.randint(8, 60),
        decoder_layers=rng.randint(1, 4),
        decoder_attention_heads=heads,
        decoder_ffn_dim=rng.randint(8, 60),
        max_source_positions=rng.randint(6, 30),
        max_target_positions=30,
        activation_function=rng.choice(("gelu", "relu", "silu")),
        tie_word_embeddings=rng.random() < 0.7,
        scale_embedding=rng.random() < 0.3,
        use_weighted_layer_sum=rng.random() < 0.3,
        classifier_proj_size=rng.randint(4, 20),
        num_labels=rng.randint(1, 6),
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
    )
    text = texts(rng, path, config.vocab_size, 30, rng.choice(("right", "left")))
    shape = (len(text["input_ids"]), config.num_mel_bins, 2 * config.max_source_positions)
    inputs = {"input_features": values(f"{path}.features", shape) * 2}
    if head != "ForAudioClassification":
        inputs["decoder_input_ids"] = text["input_ids"]
        inputs["decoder_attention_mask"] = text["attention_mask"]
    return Case(path, f"Whisper{head}", config, inputs, "Drawn at random.", store(rng))


def spectrograms(rng: Random, path: str, bins: int) -> Changes:
    """Spectrograms of different lengths, the shorter ones padded with zeros."""
    own = tuple(8 + length for length in lengths(rng, 30))
    mask = (np.arange(max(own))[None] < np.array(own)[:, None]).astype(np.int64)
    features = values(f"{path}.features", (len(own), max(own), bins)) * 2
    return {"input_features": features * mask[:, :, None].astype(np.float32), "attention_mask": mask}


def wav2vec2_bert(rng: Random, path: str) -> Case:
    heads, bins = rng.choice((1, 2, 4)), 2 * rng.randint(2, 10)
    head = rng.choice(("Model", "ForCTC", "ForSequenceClassification"))
    config = transformers.Wav2Vec2BertConfig(
        vocab_size=rng.randint(5, 40),
        hidden_size=4 * heads * rng.randint(1, 4),
        num_hidden_layers=rng.randint(1, 3),
        num_attention_heads=heads,
        intermediate_size=rng.randint(8, 60),
        feature_projection_input_dim=bins,
        conv_depthwise_kernel_size=rng.choice((1, 3, 7)),
        left_max_position_embeddings=rng.randint(1, 20),
        right_max_position_embeddings=rng.randint(1, 20),
        position_embeddings_type=rng.choice(("relative_key", "relative_key", None)),
        add_adapter=head != "ForSequenceClassification" and rng.random() < 0.5,
        num_adapter_layers=rng.randint(1, 2),
        use_weighted_layer_sum=rng.random() < 0.3,
        classifier_proj_size=rng.randint(4, 20),
        num_labels=rng.randint(1, 6),
        layer_norm_eps=rng.choice(EPSILONS),
    )
    inputs = spectrograms(rng, path, bins)
    return Case(path, f"Wav2Vec2Bert{head}", config, inputs, "Drawn at random.", store(rng))


def speech_to_text(rng: Random, path: str) -> Case:
    heads, bins = rng.choice((1, 2, 4)), rng.randint(3, 12)
    kernels = [rng.choice((3, 5, 7)) for _ in range(rng.randint(1, 3))]
    config = transformers.Speech2TextConfig(
        vocab_size=rng.randint(30, 90),
        d_model=4 * heads * rng.randint(1, 4),
        encoder_layers=rng.randint(1, 3),
        encoder_attention_heads=heads,
        encoder_ffn_dim=rng.randint(8, 60),
        decoder_layers=rng.randint(1, 3),
        decoder_attention_heads=heads,
        decoder_ffn_dim=rng.randint(8, 60),
        num_conv_layers=len(kernels),
        conv_kernel_sizes=kernels,
        conv_channels=2 * rng.randint(2, 10),
        input_feat_per_channel=bins,
        scale_embedding=rng.random() < 0.5,
        tie_word_embeddings=rng.random() < 0.5,
        max_target_positions=40,
    )
    text = texts(rng, path, config.vocab_size, 30, "right")
    inputs = spectrograms(rng, path, bins)
    rows = min(len(text["input_ids"]), len(inputs["input_features"]))
    given = {name: value[:rows] for name, value in inputs.items()}
    given |= {f"decoder_{name}": text[name][:rows] for name in ("input_ids", "attention_mask")}
    head = rng.choice(("Model", "ForConditionalGeneration"))
    return Case(path, f"Speech2Text{head}", config, given, "Drawn at random.", store(rng))


def moonshine(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    config = transformers.MoonshineConfig(
        vocab_size=rng.randint(30, 90),
        hidden_size=4 * heads * rng.randint(1, 4),
        intermediate_size=rng.randint(8, 60),
        encoder_num_hidden_layers=rng.randint(1, 3),
        decoder_num_hidden_layers=rng.randint(1, 3),
        encoder_num_attention_heads=heads,
        decoder_num_attention_heads=heads,
        max_position_embeddings=40,
        attention_bias=rng.random() < 0.5,
        tie_word_embeddings=rng.random() < 0.5,
        pad_token_id=0,
    )
    text = texts(rng, path, config.vocab_size, 30, "right")
    samples = tuple(1700 + 400 * (row % 3) for row in range(len(text["input_ids"])))
    given = waves.batch(f"{path}.{rng.random()}", samples, rng.random() < 0.7)
    given |= {f"decoder_{name}": text[name] for name in ("input_ids", "attention_mask")}
    head = rng.choice(("Model", "ForConditionalGeneration"))
    return Case(path, f"Moonshine{head}", config, given, "Drawn at random.", store(rng))


def speecht5(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    changes = {
        "hidden_size": 4 * heads * rng.randint(1, 4),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_layers": rng.randint(1, 3),
        "decoder_layers": rng.randint(1, 3),
        "num_conv_pos_embedding_groups": 4,
        "reduction_factor": rng.randint(1, 3),
        "speech_decoder_postnet_layers": rng.randint(1, 4),
        "encoder_max_relative_position": rng.randint(2, 30),
        "layer_norm_eps": rng.choice(EPSILONS),
    }
    made = rng.choice((speecht5_cases.speech, speecht5_cases.transcript))
    if made is speecht5_cases.transcript:
        samples = (200 + 20 * rng.randint(0, 20), 200 + 20 * rng.randint(0, 20))
        case = made(path, "Drawn at random.", samples, **changes)
    else:
        case = made(path, "ForTextToSpeech", "Drawn at random.", speecht5_cases.texts(path), **changes)
    return replace(case, path=path, store=store(rng))


def vits(rng: Random, path: str) -> Case:
    changes = {
        "hidden_size": 4 * rng.randint(2, 6),
        "num_hidden_layers": rng.randint(1, 3),
        "window_size": rng.randint(1, 9),
        "use_stochastic_duration_prediction": rng.random() < 0.6,
        "duration_predictor_num_flows": rng.randint(2, 4),
        "duration_predictor_flow_bins": rng.randint(3, 10),
        "prior_encoder_num_flows": rng.randint(1, 4),
        "flow_size": 2 * rng.randint(2, 6),
        "wavenet_dilation_rate": rng.randint(1, 2),
        "speaking_rate": rng.choice((0.7, 1.0, 1.5)),
    }
    case = vits_cases.case(path, "Drawn at random.", **changes)
    return replace(case, path=path, store=store(rng))


def pop2piano(rng: Random, path: str) -> Case:
    changes = {
        "d_model": 4 * rng.randint(1, 5),
        "d_kv": rng.randint(2, 8),
        "d_ff": rng.randint(4, 40),
        "num_layers": rng.randint(1, 3),
        "num_decoder_layers": rng.choice((None, 1, 2)),
        "num_heads": rng.randint(1, 4),
        "feed_forward_proj": rng.choice(("relu", "gated-gelu", "gated-silu")),
        "dense_act_fn": rng.choice(("relu", "gelu", "silu")),
        "tie_word_embeddings": rng.random() < 0.5,
        "layer_norm_epsilon": rng.choice(EPSILONS),
        "composer_vocab_size": rng.randint(1, 30),
    }
    made = pop2piano_cases.case(path, "Drawn at random.", rng.choice(("left", "right")), **changes)
    return replace(made, store=store(rng))


DRAWN = {model: partial(heard, prefix) for model, prefix in PREFIXES.items()} | {
    "whisper": whisper,
    "wav2vec2-bert": wav2vec2_bert,
    "speech_to_text": speech_to_text,
    "moonshine": moonshine,
    "speecht5": speecht5,
    "vits": vits,
    "pop2piano": pop2piano,
}
