"""Conformers over log-mel spectrograms with a CTC head: padding, odd numbers of frames, each way of adding branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats
from weft_reference.tasks import Call

MODELS = ("parakeet_ctc", "lasr_ctc")
PARAKEET: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "conv_kernel_size": 5,
    "subsampling_factor": 4,
    "subsampling_conv_channels": 6,
    "num_mel_bins": 12,
}
LASR: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "conv_kernel_size": 6,
    "subsampling_conv_channels": 10,
    "num_mel_bins": 12,
}


def spectrograms(bins: int = 12, lengths: tuple[int, ...] = (37, 26), masked: bool = True) -> Inputs:
    """Spectrograms of different lengths, the shorter padded with zeros at the end."""
    frames = max(lengths)
    mask = (np.arange(frames)[None] < np.array(lengths)[:, None]).astype(np.int64)
    features = floats("spectrogram", (len(lengths), frames, bins)) * mask[:, :, None].astype(np.float32)
    return {"input_features": features} | ({"attention_mask": mask} if masked else {})


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield from cases()
    yield from recognition()


def cases() -> Iterator[Case]:
    def parakeet(name: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = transformers.ParakeetCTCConfig(vocab_size=17, pad_token_id=16, encoder_config=PARAKEET | changes)
        return Case(f"parakeet_ctc/{name}", "ParakeetForCTC", config, inputs, notes)

    def lasr(name: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = transformers.LasrCTCConfig(vocab_size=17, encoder_config=LASR | changes)
        return Case(f"lasr_ctc/{name}", "LasrForCTC", config, inputs, notes)

    yield parakeet("ctc", "Two spectrograms, the second shorter.", spectrograms())
    yield parakeet("no-mask", "Without a mask.", spectrograms(lengths=(33, 33), masked=False))
    wider = {"subsampling_factor": 8, "num_mel_bins": 16, "subsampling_conv_kernel_size": 5, "num_hidden_layers": 1}
    yield parakeet("eighth", "Eight frames become one; kernels of five.", spectrograms(16, (61, 40)), **wider)
    plain = {"scale_input": False, "attention_bias": False, "convolution_bias": False, "hidden_act": "gelu"}
    yield parakeet("no-bias", "No biases, no scale.", spectrograms(), **plain)
    yield lasr("ctc", "Two spectrograms, the second shorter; an even kernel.", spectrograms())
    yield lasr("no-mask", "Without a mask.", spectrograms(lengths=(33, 33), masked=False))
    other = {"feed_forward_residual_weights": [0.8, 1.2], "conv_residual_weights": [1.1, 0.7], "conv_kernel_size": 3,
             "attention_bias": True, "convolution_bias": True, "subsampling_conv_kernel_size": 3, "layer_norm_eps": 0.1}
    yield lasr("weights", "Other weights of residuals, biases, smaller kernels.", spectrograms(), **other)


PIECES = ["▁", "▁the", "▁a", "e", "t", "a", "o", "in", "s", "th", "er", "▁w", "d", "n", "r", "l"]


def words(tokenizer_class: type, pieces: list[str], **special: str) -> Any:
    """Pieces of a Unigram model, whose padding is CTC's blank."""
    made = Tokenizer(models.Unigram([(piece, -float(index)) for index, piece in enumerate(pieces)], unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return tokenizer_class(tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", **special)


def recognition() -> Iterator[AudioTaskCase]:
    name, notes = "automatic-speech-recognition", "Files of other rates."
    calls = (Call("speech.wav"), Call("sweep.wav"), Call(["sweep.wav", "speech.wav"]))
    config = transformers.ParakeetCTCConfig(vocab_size=18, pad_token_id=17, encoder_config=PARAKEET)
    extractor = transformers.ParakeetFeatureExtractor(feature_size=12)
    pieces = words(transformers.ParakeetTokenizer, ["<unk>", *PIECES, "<pad>"])
    yield AudioTaskCase(f"parakeet_ctc/tasks/{name}", name, "ParakeetForCTC", config, extractor, calls, notes, pieces)
    config = transformers.LasrCTCConfig(vocab_size=18, pad_token_id=17, encoder_config=LASR | {"num_mel_bins": 10})
    extractor = transformers.LasrFeatureExtractor(feature_size=10)
    yield AudioTaskCase(f"lasr_ctc/tasks/{name}", name, "LasrForCTC", config, extractor, calls, notes, pieces)
