"""SigLIP's tokenizer over the small vocabulary of pieces, in both forms that checkpoints hold: `spiece.model`, which the
reference reads, and `tokenizer.json`, which agrees with it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from sentencepiece import sentencepiece_model_pb2 as sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import SiglipTokenizer

from weft_reference.wordpiece import DATA

PUNCTUATION = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""


def pieces() -> list[tuple[str, float]]:
    """`<pad>` 0, `</s>` 1, `<unk>` 2, then those with a score."""
    return [(piece, score) for piece, score in json.loads((DATA / "unigram.json").read_text(encoding="utf-8"))]


def model_file() -> bytes:
    """The pieces as SentencePiece stores a unigram model."""
    kinds = sentencepiece.ModelProto.SentencePiece
    kind = {"<pad>": kinds.CONTROL, "</s>": kinds.CONTROL, "<unk>": kinds.UNKNOWN}
    model = sentencepiece.ModelProto()
    for piece, score in pieces():
        model.pieces.add(piece=piece, score=score, type=kind.get(piece, kinds.NORMAL))
    model.trainer_spec.model_type = sentencepiece.TrainerSpec.UNIGRAM
    for name, place in (("pad", 0), ("eos", 1), ("unk", 2), ("bos", -1)):
        setattr(model.trainer_spec, f"{name}_id", place)
    model.normalizer_spec.name = "identity"
    return model.SerializeToString(deterministic=True)


def fast() -> Tokenizer:
    """Lower case, no punctuation, one space between words."""
    tokenizer = Tokenizer(models.Unigram(pieces(), unk_id=2))
    tokenizer.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in ("</s>", "<unk>")])
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex(PUNCTUATION), ""),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


class Published:
    """Saves what a published checkpoint holds; of the inputs it names the ids alone, so that padding is seen."""

    def save_pretrained(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            file = Path(temporary) / "spiece.model"
            file.write_bytes(model_file())
            SiglipTokenizer(str(file), model_input_names=["input_ids"]).save_pretrained(folder)
        fast().save(str(Path(folder) / "tokenizer.json"))


def siglip_tokenizer() -> Any:
    return Published()
