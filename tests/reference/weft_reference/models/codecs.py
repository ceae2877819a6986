"""Neural audio codecs and vocoders: strides even and odd, dilations, lengths that strides do not divide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats

POCKET = tuple(f"pocket_tts_audio_tokenizer{half}" for half in ("", "_encoder", "_decoder"))
MODELS = (
    "dac",
    "encodec",
    "mimi",
    "mimi_encoder",
    "mimi_decoder",
    *POCKET,
    "vibevoice_acoustic_tokenizer",
    "speecht5_hifigan",
    "xcodec",
    "xcodec2",
    "neucodec",
)
DAC: dict[str, Any] = {
    "encoder_hidden_size": 4,
    "downsampling_ratios": [2, 4],
    "decoder_hidden_size": 24,
    "n_codebooks": 3,
    "codebook_size": 16,
    "codebook_dim": 5,
}
ENCODEC: dict[str, Any] = {
    "target_bandwidths": [24.0, 40.0],
    "sampling_rate": 8000,
    "hidden_size": 6,
    "num_filters": 4,
    "upsampling_ratios": [4, 2],
    "codebook_size": 16,
}
MIMI: dict[str, Any] = {
    "sampling_rate": 1600,
    "hidden_size": 8,
    "num_filters": 4,
    "upsampling_ratios": [4, 2],
    "codebook_size": 16,
    "codebook_dim": 6,
    "num_quantizers": 4,
    "vector_quantization_hidden_dimension": 6,
    "upsample_groups": 8,
    "num_hidden_layers": 2,
    "intermediate_size": 12,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "sliding_window": 5,
}
HIFIGAN: dict[str, Any] = {
    "model_in_dim": 6,
    "upsample_initial_channel": 16,
    "upsample_rates": [4, 2],
    "upsample_kernel_sizes": [8, 5],
    "resblock_kernel_sizes": [3, 5],
    "resblock_dilation_sizes": [[1, 3], [1, 2, 5]],
}
XCODEC: dict[str, Any] = {"target_bandwidths": [8.0, 12.0], "sample_rate": 8000, "codebook_size": 16}
ACOUSTIC: dict[str, Any] = {
    "model_type": "dac",
    "encoder_hidden_size": 4,
    "downsampling_ratios": [4, 2],
    "decoder_hidden_size": 16,
    "upsampling_ratios": [4, 2],
    "hidden_size": 6,
}
SEMANTIC: dict[str, Any] = {
    "model_type": "hubert",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "conv_dim": [6, 6],
    "conv_kernel": [6, 3],
    "conv_stride": [4, 2],
    "num_conv_pos_embeddings": 5,
    "num_conv_pos_embedding_groups": 2,
}


def xcodec(path: str, notes: str, samples: int, acoustic: Any = None, semantic: Any = None, **changes: Any) -> Case:
    """X-Codec: an acoustic encoder beside a semantic model, whose frames are of as many samples."""
    config = transformers.XcodecConfig(
        **(XCODEC | changes),
        acoustic_model_config=ACOUSTIC | (acoustic or {}),
        semantic_model_config=SEMANTIC | (semantic or {}),
    )
    return Case(path, "XcodecModel", config, {"input_values": floats(f"{path}.waves", (2, 1, samples))}, notes)


XCODEC2: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 6,
    "encoder_hidden_size": 3,
    "downsampling_ratios": [2, 3],
    "quantization_dim": 40,
    "quantization_levels": [4, 3, 5],
}
BERT: dict[str, Any] = {
    "model_type": "wav2vec2-bert",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "feature_projection_input_dim": 6,
    "conv_depthwise_kernel_size": 3,
    "left_max_position_embeddings": 4,
    "right_max_position_embeddings": 2,
}


def xcodec2(
    path: str, prefix: str, notes: str, samples: int, frames: int, padded: bool = True, semantic: Any = None, **changes: Any
) -> Case:
    """X-Codec 2 or NeuCodec: a waveform and its spectrogram, of `frames` frames."""
    config = getattr(transformers, f"{prefix}Config")(
        **(XCODEC2 | changes), semantic_model_config=BERT | (semantic or {})
    )
    width = config.semantic_model_config.feature_projection_input_dim
    short = [[samples], [samples - samples // 4]] if padded else [[samples], [samples]]
    mask = (np.arange(samples)[None] < np.array(short)).astype(np.int64)
    seen = [[frames], [frames - frames // 4]] if padded else [[frames], [frames]]
    inputs = {
        "input_values": floats(f"{path}.waves", (2, 1, samples)),
        "input_features": floats(f"{path}.mel", (2, frames, width)),
        "padding_mask": mask[:, None] if prefix == "Xcodec2" else mask,
        "input_features_mask": (np.arange(frames)[None] < np.array(seen)).astype(np.int64),
    }
    return Case(path, f"{prefix}Model", config, inputs, notes)


def goldens() -> Iterator[Case]:
    def dac(name: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        return Case(
            f"dac/{name}", "DacModel", transformers.DacConfig(**(DAC | changes)), inputs, notes, without=("loss",)
        )

    def encodec(name: str, notes: str, samples: int = 61, padded: int = 0, **changes: Any) -> Case:
        config = transformers.EncodecConfig(**(ENCODEC | changes))
        inputs: dict[str, Any] = {"input_values": floats(f"encodec.{name}", (2, config.audio_channels, samples))}
        if padded:
            inputs["padding_mask"] = (np.arange(samples)[None] < np.array([[samples], [samples - padded]])).astype(
                np.int64
            )
        return Case(f"encodec/{name}", "EncodecModel", config, inputs, notes)

    def mimi(name: str, notes: str, **changes: Any) -> Case:
        inputs = {"input_values": floats(f"mimi.{name}", (2, 1, 157))}
        return Case(
            f"mimi/{name}",
            "MimiModel",
            transformers.MimiConfig(**(MIMI | changes)),
            inputs,
            notes,
            without=("encoder_past", "decoder_past"),
        )

    def hifigan(name: str, notes: str, **changes: Any) -> Case:
        config = transformers.SpeechT5HifiGanConfig(**(HIFIGAN | changes))
        inputs = {"spectrogram": floats("spectrogram", (2, 13, config.model_in_dim))}
        return Case(f"speecht5_hifigan/{name}", "SpeechT5HifiGan", config, inputs, notes)

    waves = {"input_values": floats("wave", (2, 1, 200))}
    odd = {"input_values": floats("odd", (1, 1, 157))}
    yield dac("base", "Two waveforms.", waves)
    yield dac(
        "odd-strides", "Strides of three, and samples that strides do not divide.", odd, downsampling_ratios=[3, 2, 5]
    )
    yield dac("one-codebook", "One codebook of many codes.", odd, n_codebooks=1, codebook_size=64, codebook_dim=8)
    yield encodec("base", "Two waveforms, the second one padded.", padded=14)
    yield encodec(
        "volume",
        "Waveforms divided by their volume, the first half as long as a mirrored end.",
        5,
        2,
        normalize=True,
        num_lstm_layers=1,
    )
    stereo = {"audio_channels": 2, "normalize": True, "norm_type": "time_group_norm", "use_causal_conv": False}
    yield encodec(
        "stereo", "Two channels, norms of all positions, convolutions that see what follows.", 43, 9, **stereo
    )
    dilated = {
        "num_residual_layers": 3,
        "dilation_growth_rate": 3,
        "residual_kernel_size": 5,
        "use_conv_shortcut": False,
        "compress": 1,
    }
    yield encodec("dilated", "Residual blocks of growing dilations, without a convolution around them.", **dilated)
    zeros = {
        "pad_mode": "constant",
        "upsampling_ratios": [3, 5],
        "trim_right_ratio": 0.4,
        "codebook_dim": 6,
        "kernel_size": 4,
        "last_kernel_size": 3,
    }
    yield encodec("zeros", "Zeros beyond the ends, odd strides, what is too much cut off on both sides.", 52, **zeros)
    yield encodec("edges", "The ends repeated.", 37, pad_mode="replicate", target_bandwidths=[8.0])
    yield mimi("base", "Two waveforms.")
    wide = {
        "num_semantic_quantizers": 2,
        "vector_quantization_hidden_dimension": 8,
        "codebook_dim": 8,
        "num_key_value_heads": 1,
        "head_dim": 6,
    }
    yield mimi(
        "grouped",
        "No projections around codebooks, two of them semantic; heads that share keys.",
        **wide,
        attention_bias=True,
        frame_rate=50.0,
    )
    around = {
        "use_causal_conv": False,
        "pad_mode": "reflect",
        "use_conv_shortcut": True,
        "num_residual_layers": 2,
        "upsampling_ratios": [3, 2],
    }
    yield mimi(
        "around",
        "Convolutions that see what follows, mirrored ends, convolutions around residual blocks.",
        **around,
        upsample_groups=2,
    )
    encoder = transformers.MimiEncoderConfig(**MIMI)
    yield Case(
        "mimi_encoder/base",
        "MimiEncoderModel",
        encoder,
        {"input_values": floats("mimi.encoder", (2, 1, 157))},
        "Two waveforms.",
    )
    decoder = transformers.MimiDecoderConfig(**MIMI)
    yield Case(
        "mimi_decoder/base",
        "MimiDecoderModel",
        decoder,
        {"latents": floats("mimi.decoder", (2, 8, 11))},
        "Two sequences of latents.",
    )
    pocket = {name: MIMI[name] for name in MIMI if "codebook" not in name and "quantiz" not in name} | {
        "latent_stride": 3,
        "latent_dim": 5,
    }
    waves = {"input_values": floats("pocket", (2, 1, 157))}
    for path, half, given in zip(
        POCKET,
        ("", "Encoder", "Decoder"),
        (waves, waves, {"latents": floats("pocket.latents", (2, 8, 7))}),
        strict=True,
    ):
        config = getattr(transformers, f"PocketTTSAudioTokenizer{half}Config")(**pocket)
        yield Case(
            f"{path}/base", f"PocketTTSAudioTokenizer{half}Model", config, given, "Two waveforms, or their latents."
        )
    stages = {
        "hidden_size": 6,
        "kernel_size": 5,
        "num_filters": 3,
        "downsampling_ratios": [2, 3],
        "depths": [2, 1, 3],
        "ffn_expansion": 2,
    }
    vibevoice = transformers.VibeVoiceAcousticTokenizerConfig(**stages)
    sounds = {"input_values": floats("vibevoice", (2, 1, 36))}
    yield Case(
        "vibevoice_acoustic_tokenizer/base",
        "VibeVoiceAcousticTokenizerModel",
        vibevoice,
        sounds,
        "Two sounds, no noise on latents.",
        forward={"sample": False},
    )
    yield xcodec("xcodec/base", "Two waveforms, a frame begun.", 71)
    yield xcodec("xcodec/whole", "A frame begun that is too short for the semantic model.", 67)
    odd = {"downsampling_ratios": [3, 2], "upsampling_ratios": [2, 3]}
    wavlm = {
        "model_type": "wavlm",
        "conv_stride": [3, 1],
        "conv_kernel": [3, 2],
        "do_stable_layer_norm": True,
        "feat_extract_norm": "layer",
        "num_buckets": 8,
        "max_bucket_distance": 20,
    }
    blocks = {
        "strides": [1, 2],
        "channel_ratios": [2, 1],
        "block_dilations": [1, 2, 3],
        "kernel_size": 5,
        "unit_kernel_size": 5,
    }
    yield xcodec(
        "xcodec/wavlm", "WavLM, odd strides, a semantic encoder that strides.", 93, odd, wavlm, **blocks, sample_rate=6000
    )
    yield xcodec2("xcodec2/base", "Xcodec2", "Two sounds, the second one padded.", 60, 10)
    wide = {"attention_bias": True, "hidden_act": "gelu", "downsampling_ratios": [3, 5], "head_dim": 8}
    yield xcodec2("xcodec2/begun", "Xcodec2", "A frame begun; odd hops, biases.", 73, 5, False, **wide)
    yield xcodec2("neucodec/base", "NeuCodec", "Two sounds, the second one padded; a frame more of the spectrogram.", 60, 11)
    rates = {"input_sampling_rate": 8000, "output_sampling_rate": 12000, "downsampling_ratios": [2, 3, 3]}
    yield xcodec2("neucodec/begun", "NeuCodec", "A frame begun, a frame less of the spectrogram; other rates.", 106, 5, **rates)
    rates |= {"downsampling_ratios": [4, 5]}
    yield xcodec2("neucodec/within", "NeuCodec", "The waveform ends within the last frame.", 119, 6, **rates)
    yield hifigan("vocoder", "Two spectrograms, normalised.")
    yield hifigan("plain", "Spectrograms as they are, another slope.", normalize_before=False, leaky_relu_slope=0.3)
    one = {
        "upsample_rates": [3],
        "upsample_kernel_sizes": [7],
        "resblock_kernel_sizes": [7],
        "resblock_dilation_sizes": [[4]],
    }
    yield hifigan("one-stage", "One transposed convolution, one residual block.", **one)
