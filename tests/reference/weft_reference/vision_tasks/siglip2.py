"""SigLIP 2's tasks: pictures of several shapes against labels, which it reads in small letters; classes of pictures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tokenizers.processors import TemplateProcessing
from transformers import Siglip2ImageProcessorPil, Siglip2Tokenizer

from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.siglip import LENGTH

SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
MERGES = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "a"), ("i", "n"), ("p", "h"), ("ph", "o"), ("a", "r"), ("e", "r")]


def tokenizer() -> Siglip2Tokenizer:
    """Letters and a few pairs of them, bytes for what else there is; `<eos>` behind a text, padding on the right."""
    letters = "▁abcdefghijklmnopqrstuvwxyz.,!?:'"
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *letters, *map("".join, MERGES)]
    made = Siglip2Tokenizer(
        vocab={token: index for index, token in enumerate(tokens)},
        merges=MERGES,
        padding_side="right",
        model_input_names=["input_ids"],
        model_max_length=LENGTH,
    )
    made.backend_tokenizer.post_processor = TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    return made


class Published:
    """Saves what published checkpoints hold: Gemma's tokenizer, which leaves letters as they are. The reference makes its
    own of the model out of it, and reads all in small letters.
    """

    def __init__(self, made: Siglip2Tokenizer) -> None:
        self.made = made

    def save_pretrained(self, folder: Path) -> None:
        self.made.save_pretrained(folder)
        for name, key, value in (
            ("tokenizer.json", "normalizer", {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}),
            ("tokenizer_config.json", "tokenizer_class", "GemmaTokenizer"),
        ):
            path = Path(folder) / name
            saved = json.loads(path.read_text(encoding="utf-8")) | {key: value}
            path.write_text(json.dumps(saved, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def tasks(config: Callable[..., Any]) -> Iterator[VisionTaskCase]:
    labels = ["a red disc", "blue bars", "A cat's tail, and MORE of it!"]
    reads = tokenizer()
    processor = Siglip2ImageProcessorPil(patch_size=4, max_num_patches=10)
    yield VisionTaskCase(
        "siglip2/tasks/zero-shot-image-classification",
        "zero-shot-image-classification",
        "Siglip2Model",
        config({"vocab_size": len(reads), "max_position_embeddings": LENGTH}),
        processor,
        (
            Call("rgb.png", {"candidate_labels": labels}),
            Call(["tall.png", "oriented.png"], {"candidate_labels": labels[:2], "hypothesis_template": "{}"}),
            Call("wide.png", {"candidate_labels": labels, "hypothesis_template": "A weaver's picture: {}! É😀"}),
        ),
        "Pictures of several shapes; capitals and what has no token.",
        Published(reads),
    )
    yield VisionTaskCase(
        "siglip2/tasks/image-classification",
        "image-classification",
        "Siglip2ForImageClassification",
        config(num_labels=4),
        processor,
        (Call("rgb.png"), Call(["tall.png", "oriented.png"], {"top_k": 2})),
        "Pictures of several shapes.",
    )
