"""Vocabularies in GGUF files, and what the tokenizers they were taken from make of texts.

The oracles are `transformers`' own classes over the same vocabulary, and for pieces SentencePiece itself.
"""

from __future__ import annotations

import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as proto
from transformers import (
    BertTokenizer,
    CohereTokenizer,
    GemmaTokenizer,
    GPT2Tokenizer,
    GPTNeoXTokenizer,
    Qwen2Tokenizer,
    Qwen3_5Tokenizer,
)

from weft_reference.byte_pairs import merged
from weft_reference.files import Files, to_json
from weft_reference.gguf_files import add
from weft_reference.wordpiece import DATA

MERGES = 220
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
SPACE = "\u2581"
TEXTS = [
    "The weaver throws the weft across the warp.",
    "It's what we'd do: they'll say I'm late, you've WON'T.",
    " leading, trailing and  double   spaces ",
    "Digits 7, 42, 1234567 and 3.14159",
    "line\nbreaks\r\n\n\tand tabs",
    "naïve café, cafe\u0301 and Ångström",
    "你好，世界！ こんにちは 한국어",
    "emoji 🙂🚀 and symbols €$%^&*()_+",
    "CamelCaseWords and snake_case_words",
    "",
    "   ",
]


def learned(words: Mapping[str, int], count: int = MERGES) -> list[tuple[str, str]]:
    """Merges of these words: the commonest pair first, of equals the first in the alphabet."""
    spelled = {word: list(word) for word in words}
    found: list[tuple[str, str]] = []
    while len(found) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in spelled.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += words[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        found.append(best)
        spelled = {word: merged(parts, best) for word, parts in spelled.items()}
    return found


def corpus() -> str:
    return (DATA / "corpus.txt").read_text(encoding="utf-8")


@dataclass(frozen=True)
class TokenizerCase:
    """`made` gives the metadata `tokenizer.ggml.*`, and what encodes a text."""

    path: str
    made: Callable[[], tuple[dict[str, Any], Callable[[str], list[int]]]]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Files:
        import gguf

        values, encode = self.made()
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "model.gguf"
            writer = gguf.GGUFWriter(path, "llama")
            add(writer, "llama.context_length", 64)
            for key, value in (values | dict(self.metadata)).items():
                add(writer, f"tokenizer.{key}" if key == "chat_template" else f"tokenizer.ggml.{key}", value)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            data = path.read_bytes()
        texts = [{"text": text, "ids": encode(text)} for text in TEXTS]
        return {f"{self.path}/model.gguf": data, f"{self.path}/texts.json": to_json(texts)}


def byte_level(tokenizer_class: Any, pre: str, special: list[str]) -> tuple[dict[str, Any], Callable[[str], list[int]]]:
    """Byte-pair encoding as a class of the reference splits texts."""
    from tokenizers import pre_tokenizers

    empty = tokenizer_class(vocab={token: i for i, token in enumerate(special)}, merges=[])._tokenizer
    words = Counter(word for word, _ in empty.pre_tokenizer.pre_tokenize_str(corpus()))
    merges = learned(words)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*special, *letters, *dict.fromkeys("".join(pair) for pair in merges)]
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = tokenizer_class(vocab=vocab, merges=merges)
    values = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": [CONTROL] * len(special) + [NORMAL] * (len(tokens) - len(special)),
        "merges": [" ".join(pair) for pair in merges],
        "eos_token_id": 0,
        "add_bos_token": False,
    }
    return values, lambda text: tokenizer.encode(text, add_special_tokens=False)


def pieces(prefix: bool) -> tuple[dict[str, Any], Callable[[str], list[int]]]:
    """SentencePiece's byte-pair encoding with bytes for what the vocabulary lacks, as Llama 2's, or Gemma's without prefix."""
    words = Counter(SPACE + word for word in corpus().split())
    merges = learned(words)
    letters = sorted({letter for word in words for letter in word})
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
    scores = [0.0] * len(tokens)
    for rank, piece in enumerate([*dict.fromkeys("".join(pair) for pair in merges), *letters]):
        tokens.append(piece)
        types.append(NORMAL)
        scores.append(-float(rank))
    model = proto.ModelProto()
    for token, kind, score in zip(tokens, types, scores):
        model.pieces.add(piece=token, score=score, type=kind)
    model.trainer_spec.model_type = proto.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = len(tokens)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = prefix
    model.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    values = {
        "model": "llama",
        "pre": "default",
        "tokens": tokens,
        "scores": scores,
        "token_type": types,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        "add_space_prefix": prefix,
    }
    return values, lambda text: [1, *processor.encode(text)]


def listed_pieces(**kind: str) -> tuple[dict[str, Any], Callable[[str], list[int]]]:
    """Gemma's byte-pair encoding, with its merges in the file, as Gemma 4's have them, and a Granite model of embeddings."""
    words = Counter(SPACE + word for word in corpus().split())
    merges = learned(words)
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = sorted({letter for word in words for letter in word})
    tokens += [*dict.fromkeys("".join(pair) for pair in merges), *letters]
    tokenizer = GemmaTokenizer(vocab={token: index for index, token in enumerate(tokens)}, merges=merges)
    types = [CONTROL] * 3 + [UNKNOWN, CONTROL] + [BYTE] * 256
    values = {
        **kind,
        "tokens": tokens,
        "scores": [-1000.0] * len(tokens),
        "token_type": types + [NORMAL] * (len(tokens) - len(types)),
        "merges": [" ".join(pair) for pair in merges],
        "padding_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
        "unknown_token_id": 3,
        "mask_token_id": 4,
        "add_space_prefix": False,
        "add_bos_token": True,
    }
    return values, lambda text: [2, *tokenizer.encode(text, add_special_tokens=False)]


def unigrams() -> tuple[dict[str, Any], Callable[[str], list[int]]]:
    """SentencePiece's unigrams, with a table by which texts are normalised, as T5's."""
    trained = io.BytesIO()
    with tempfile.TemporaryDirectory() as temporary:
        rules = Path(temporary) / "rules.tsv"
        # A composed letter for two, a ligature's letters, and a space for what is none: letters as hexadecimal numbers.
        rules.write_text("65 301\tE9\n41 30A\tC5\nFB01\t66 69\nA0\t20\n9\t20\nA\t20\nD\t20\n")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus().splitlines()),
            model_writer=trained,
            model_type="unigram",
            vocab_size=160,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            num_threads=1,
            minloglevel=2,
        )
    model = proto.ModelProto.FromString(trained.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
    values = {
        "model": "t5",
        "pre": "default",
        "tokens": [piece.piece for piece in model.pieces],
        "scores": [piece.score for piece in model.pieces],
        "token_type": [int(piece.type) for piece in model.pieces],
        "padding_token_id": 0,
        "eos_token_id": 1,
        "unknown_token_id": 2,
        "add_space_prefix": True,
        "remove_extra_whitespaces": True,
        "precompiled_charsmap": model.normalizer_spec.precompiled_charsmap,
    }
    return values, lambda text: [*processor.encode(text), 1]


def word_pieces() -> tuple[dict[str, Any], Callable[[str], list[int]]]:
    """BERT's."""
    tokens = (DATA / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokens = [token for token in tokens if token]
    tokenizer = BertTokenizer(vocab={token: index for index, token in enumerate(tokens)})
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    stored = [t if t in special else t[2:] if t.startswith("##") else SPACE + t for t in tokens]
    values = {
        "model": "bert",
        "pre": "jina-v2-en",
        "tokens": stored,
        "token_type": [CONTROL if token in special else NORMAL for token in tokens],
        "padding_token_id": tokens.index("[PAD]"),
        "unknown_token_id": tokens.index("[UNK]"),
        "cls_token_id": tokens.index("[CLS]"),
        "seperator_token_id": tokens.index("[SEP]"),
        "mask_token_id": tokens.index("[MASK]"),
    }
    return values, lambda text: tokenizer.encode(text)


def tokenizers() -> Iterator[TokenizerCase]:
    def case(name: str, made: Callable[[], Any], **metadata: Any) -> TokenizerCase:
        return TokenizerCase(f"gguf/tokenizers/{name}", made, metadata)

    template = "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}"
    end = ["<|endoftext|>"]
    yield case("gpt-2", lambda: byte_level(GPT2Tokenizer, "gpt-2", end))
    yield case("qwen2", lambda: byte_level(Qwen2Tokenizer, "qwen2", end), chat_template=template)
    yield case("qwen35", lambda: byte_level(Qwen3_5Tokenizer, "qwen35", end))
    yield case("olmo", lambda: byte_level(GPTNeoXTokenizer, "olmo", end))
    yield case("command-r", lambda: byte_level(CohereTokenizer, "command-r", ["<|END_OF_TURN_TOKEN|>", "<UNK>", "<BOS_TOKEN>", "<PAD>", "<CLS>", "<SEP>", "<MASK_TOKEN>"]))
    yield case("llama", lambda: pieces(True))
    yield case("gemma", lambda: pieces(False))
    yield case("gemma4", lambda: listed_pieces(model="gemma4"))
    yield case("granite", lambda: listed_pieces(model="gpt2", pre="granite-embed-multi-311m"))
    yield case("t5", unigrams)
    yield case("bert", word_pieces)
