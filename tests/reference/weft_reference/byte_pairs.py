"""A small real tokenizer of byte pairs, as CLIP has it, for the task goldens. Its merges are learned from
`data/corpus.txt` each time: the commonest pair first, of equals the first in the alphabet.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from transformers import CLIPTokenizer, PreTrainedTokenizerBase

from weft_reference.wordpiece import DATA

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:;!?'()-"
END = "</w>"
MERGES = 160
SPECIAL = ["<|startoftext|>", "<|endoftext|>"]


@cache
def merges() -> list[tuple[str, str]]:
    text = (DATA / "corpus.txt").read_text(encoding="utf-8").lower()
    words = Counter(re.findall(r"[a-z]+", text))
    spelled = {word: [*word[:-1], word[-1] + END] for word in words}
    found: list[tuple[str, str]] = []
    while len(found) < MERGES:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in spelled.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        found.append(best)
        spelled = {word: merged(parts, best) for word, parts in spelled.items()}
    return found


def merged(parts: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    for part in parts:
        if joined and (joined[-1], part) == pair:
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def vocabulary() -> list[str]:
    """Letters, letters that end a word, merges, and at last the two tokens that begin and end a text."""
    return [*LETTERS, *(letter + END for letter in LETTERS), *map("".join, merges()), *SPECIAL]


def clip_tokenizer(model_max_length: int, **named: str) -> PreTrainedTokenizerBase:
    """CLIP's tokenizer over the small vocabulary; `named` are special tokens."""
    return CLIPTokenizer(
        vocab={token: index for index, token in enumerate(vocabulary())},
        merges=merges(),
        model_max_length=model_max_length,
        **named,
    )
