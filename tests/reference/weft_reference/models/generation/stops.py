"""Stop strings and decoded texts over three small tokenizers: byte-level, with byte fallback, and WordPiece."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, StopStringCriteria

from weft_reference.cases import versions
from weft_reference.wordpiece import DATA, vocabulary

STOPS = ["stop", "the", ".\n", "\n\n", "é", "日本", "😀", "</s>", " loom", "er"]
TEXTS = [
    "The weaver throws the weft across the warp.\nA shuttle carries the thread.",
    "naïve café 日本語 😀😀 end",
    "one\n\ntwo stop three",
    "  spaces   and\ttabs",
    "",
]


def corpus() -> list[str]:
    return (DATA / "corpus.txt").read_text(encoding="utf-8").splitlines()


@cache
def byte_level() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|pad|>", "<|end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|pad|>", eos_token="<|end|>")


@cache
def byte_fallback() -> PreTrainedTokenizerFast:
    """As Llama 2's: spaces are `▁`, what has no token is written in bytes."""
    learned = Tokenizer(models.BPE(unk_token="<unk>"))
    learned.normalizer = normalizers.Replace(" ", "▁")
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    learned.train_from_iterator(corpus(), trainer)
    model = json.loads(learned.to_str())["model"]
    vocab: dict[str, int] = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    for token in sorted(model["vocab"], key=model["vocab"].__getitem__):
        vocab.setdefault(token, len(vocab))
    merges = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ")) for merge in model["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ("<unk>", "<s>", "</s>")])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


@cache
def word_piece() -> PreTrainedTokenizerFast:
    vocab = {token: index for index, token in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


def byte_level_json() -> bytes:
    return _file(byte_level())


def byte_fallback_json() -> bytes:
    return _file(byte_fallback())


def word_piece_json() -> bytes:
    return _file(word_piece())


def _file(tokenizer: PreTrainedTokenizerFast) -> bytes:
    return (json.dumps(json.loads(tokenizer.backend_tokenizer.to_str()), ensure_ascii=False) + "\n").encode()


def cases() -> Any:
    made = []
    for name, tokenizer in (
        ("byte-level", byte_level()),
        ("byte-fallback", byte_fallback()),
        ("word-piece", word_piece()),
    ):
        for text in TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False)
            made.append(
                {
                    "tokenizer": name,
                    "ids": ids,
                    "text": tokenizer.decode(ids, skip_special_tokens=True),
                    "stops": {stop: _stops(tokenizer, stop, ids) for stop in STOPS},
                }
            )
    return {"format": 1, "reference": versions(), "cases": made}


def _stops(tokenizer: PreTrainedTokenizerFast, stop: str, ids: list[int]) -> list[int]:
    """The lengths at which the text so far ends with the stop string, as the criterion sees it."""
    try:
        criteria = StopStringCriteria(tokenizer=tokenizer, stop_strings=[stop])
    except ValueError:  # no token can end it
        return []
    return [end for end in range(1, len(ids) + 1) if bool(criteria(torch.tensor([ids[:end]]), None)[0])]
