"""A small real WordPiece tokenizer for the task goldens.

`data/vocab.txt` was learned from `data/corpus.txt` by `learn`; it is kept as a file so that goldens do not
depend on how a release of `tokenizers` breaks ties. `python -m weft_reference.wordpiece` learns it again.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import BertTokenizerFast, PreTrainedTokenizerBase

DATA = Path(__file__).parent / "data"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Characters beyond the corpus' own: CJK, Cyrillic and one emoji are known, others stay unknown.
EXTRA_LETTERS = list("абвгдежзийклмнопрстуфхцчшщъыьэюя東京大学日本語中国人😀")


def learn(vocab_size: int) -> list[str]:
    """WordPiece vocabulary of the corpus: special tokens first, then as the trainer orders them."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=SPECIAL, initial_alphabet=EXTRA_LETTERS, show_progress=False
    )
    lines = (DATA / "corpus.txt").read_text(encoding="utf-8").splitlines()
    tokenizer.train_from_iterator(lines, trainer)
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=vocab.__getitem__)


def vocabulary() -> list[str]:
    return (DATA / "vocab.txt").read_text(encoding="utf-8").splitlines()


def bert_tokenizer(model_max_length: int, lower: bool = True) -> PreTrainedTokenizerBase:
    """BERT's tokenizer over the small vocabulary."""
    return BertTokenizerFast(
        vocab={token: index for index, token in enumerate(vocabulary())},
        do_lower_case=lower,
        model_max_length=model_max_length,
    )


if __name__ == "__main__":
    (DATA / "vocab.txt").write_text("\n".join(learn(700)) + "\n", encoding="utf-8")
