"""Speech2Text: filter banks through strided convolutions, texts with and without padding."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sentencepiece
import transformers

from weft_reference.audio_tasks import AudioTaskCase
from weft_reference.cases import Case
from weft_reference.inputs import text_batch
from weft_reference.models.conformers import spectrograms
from weft_reference.tasks import Call

MODELS = ("speech_to_text",)
SMALL: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 20,
    "conv_channels": 12,
    "input_feat_per_channel": 6,
    "max_source_positions": 60,
    "max_target_positions": 20,
}


def case(
    name: str, head: str, notes: str, lengths: tuple[int, ...] = (37, 26), masked: bool = True, **changes: Any
) -> Case:
    config = transformers.Speech2TextConfig(**(SMALL | changes))
    text = text_batch(config.vocab_size, (7, 5), "right", pad=config.pad_token_id, key=name)
    features = spectrograms(config.input_feat_per_channel * config.input_channels, lengths, masked)
    given = {**features, "decoder_input_ids": text["input_ids"], "decoder_attention_mask": text["attention_mask"]}
    return Case(f"speech_to_text/{name}", f"Speech2Text{head}", config, given, notes)


def goldens() -> Iterator[Case | AudioTaskCase]:
    yield from cases()
    yield from recognition()


def cases() -> Iterator[Case]:
    speech = "ForConditionalGeneration"
    yield case("base", "Model", "Two spectrograms, the second shorter, and texts so far.")
    yield case("speech", speech, "Logits of tokens.")
    yield case("speech-no-mask", speech, "No mask of frames.", (33, 33), masked=False)
    other = {"num_conv_layers": 3, "conv_kernel_sizes": [3, 5, 7], "scale_embedding": False, "activation_function": "gelu"}
    yield case("speech-convolutions", speech, "Three convolutions, embeddings as they are.", (61, 40), **other)
    untied = {"tie_word_embeddings": False, "pad_token_id": 4, "input_channels": 2, "decoder_layers": 1}
    yield case("speech-untied", speech, "A table of its own for logits, another padding, two channels.", **untied)


TEXTS = ("the quick brown fox jumps over the lazy dog", "a warp thread and a weft thread")


def tokenizer() -> transformers.Speech2TextTokenizer:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        vocab_size=40,
        normalization_rule_name="identity",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    found = [pieces.id_to_piece(index) for index in range(pieces.get_piece_size())]
    vocabulary = [*special, *(piece for piece in found if piece not in special)]
    with tempfile.TemporaryDirectory() as temporary:
        vocab, spm = Path(temporary) / "vocab.json", Path(temporary) / "sentencepiece.bpe.model"
        vocab.write_text(json.dumps({piece: index for index, piece in enumerate(vocabulary)}))
        spm.write_bytes(model.getvalue())
        made = transformers.Speech2TextTokenizer(str(vocab), str(spm), do_upper_case=True)
        made.spm_file = "sentencepiece.bpe.model"
        return made


def recognition() -> Iterator[AudioTaskCase]:
    words = tokenizer()
    changes = {"vocab_size": words.vocab_size, "tie_word_embeddings": False, "input_feat_per_channel": 10}
    name, bounds = "automatic-speech-recognition", {"suppress_tokens": [0, 1, 2, 3], "no_repeat_ngram_size": 2}
    yield AudioTaskCase(
        f"speech_to_text/tasks/{name}",
        name,
        "Speech2TextForConditionalGeneration",
        transformers.Speech2TextConfig(**(SMALL | changes)),
        transformers.Speech2TextFeatureExtractor(feature_size=10, num_mel_bins=10),
        (
            Call("speech.wav", {"generate_kwargs": {"max_new_tokens": 8}}),
            Call("sweep.wav", {"generate_kwargs": {"max_new_tokens": 6, "num_beams": 1}}),
        ),
        "Files of other rates, by beams and greedily, in upper case.",
        words,
        {"decoder_start_token_id": 2, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1} | bounds,
    )
