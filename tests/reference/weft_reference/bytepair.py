"""A small real byte-level BPE tokenizer for the task goldens.

`data/merges.txt` was learned from `data/corpus.txt` by `learn`; it is kept as a file so that goldens do not depend on
how a release of `tokenizers` breaks ties. `python -m weft_reference.bytepair` learns it again.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, RobertaTokenizerFast

DATA = Path(__file__).parent / "data"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def learn(vocab_size: int) -> list[str]:
    """Merges of the corpus, one `left right` a line."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    lines = (DATA / "corpus.txt").read_text(encoding="utf-8").splitlines()
    tokenizer.train_from_iterator(lines, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]


def merges() -> list[tuple[str, str]]:
    lines = (DATA / "merges.txt").read_text(encoding="utf-8").splitlines()
    return [(left, right) for left, right in (line.split(" ") for line in lines)]


def vocabulary() -> list[str]:
    """Special tokens, every byte, what merges make, the mask."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*SPECIAL, *letters, *dict.fromkeys(left + right for left, right in merges()), "<mask>"]


def roberta_tokenizer(model_max_length: int) -> PreTrainedTokenizerBase:
    """RoBERTa's tokenizer over the small vocabulary."""
    return RobertaTokenizerFast(
        vocab={token: index for index, token in enumerate(vocabulary())},
        merges=merges(),
        mask_token=AddedToken("<mask>", lstrip=True),
        model_max_length=model_max_length,
    )


if __name__ == "__main__":
    (DATA / "merges.txt").write_text("\n".join(learn(700)) + "\n", encoding="utf-8")
