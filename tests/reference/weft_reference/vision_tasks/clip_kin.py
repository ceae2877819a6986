"""Tasks of CLIP's kin: pictures against labels of the caller's own, read by each model's tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from transformers import ChineseCLIPImageProcessorPil, CLIPImageProcessorPil, XLMRobertaTokenizer

from weft_reference.pieces import pieces
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.wordpiece import bert_tokenizer

POSITIONS = 48
LABELS = ["a red disc", "blue bars", "A cat's tail, and more of it!"]


def xlm_roberta_tokenizer(model_max_length: int) -> XLMRobertaTokenizer:
    """XLM-RoBERTa's over the small vocabulary of pieces: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3."""
    special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    return XLMRobertaTokenizer(vocab=[*special, *pieces()[3:], ("<mask>", 0.0)], model_max_length=model_max_length)


def tasks(model: str, prefix: str, config: Callable[..., Any]) -> Iterator[VisionTaskCase]:
    chinese = model == "chinese_clip"
    tokenizer = bert_tokenizer(POSITIONS) if chinese else xlm_roberta_tokenizer(POSITIONS)
    text = {"vocab_size": len(tokenizer), "max_position_embeddings": POSITIONS + 2}
    edge = config(model).vision_config.image_size
    sizes = {"size": {"shortest_edge": edge}, "crop_size": {"height": edge, "width": edge}}
    processor = (ChineseCLIPImageProcessorPil if chinese else CLIPImageProcessorPil)(**sizes)
    labels = ["日本語", *LABELS] if chinese else LABELS
    yield VisionTaskCase(
        f"{model}/tasks/zero-shot-image-classification",
        "zero-shot-image-classification",
        f"{prefix}Model",
        config(model, text),
        processor,
        (
            Call("rgb.png", {"candidate_labels": labels}),
            Call(["tall.png", "oriented.png"], {"candidate_labels": labels[:2], "hypothesis_template": "{}"}),
            Call("grey.png", {"candidate_labels": labels, "hypothesis_template": "A weaver's picture: {}!"}),
        ),
        "One picture and several, labels of several lengths, sentences of one's own.",
        tokenizer,
    )
    if model == "metaclip_2":
        yield VisionTaskCase(
            f"{model}/tasks/image-classification",
            "image-classification",
            f"{prefix}ForImageClassification",
            config(model, num_labels=4),
            processor,
            (Call("rgb.png"), Call(["tall.png", "wide.png"], {"top_k": 2})),
            "One picture and several.",
        )
