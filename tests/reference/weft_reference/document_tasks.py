"""Questions about pages, whose words and boxes are given."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from weft_reference.tasks import Call, TaskCase

RECEIPT = "The weaver sold cloth to Maria Brown in the spring of 1921 for 12.50 and bread".split()


def page(words: list[str], across: int = 5) -> list[Any]:
    """Words in lines on a page of 1000 by 1000, each with its box."""
    lines = [words[start : start + across] for start in range(0, len(words), across)]
    boxes = []
    for down, line in enumerate(lines):
        for right, word in enumerate(line):
            left, top = 40 + 180 * right, 60 + 37 * down
            boxes.append([word, [left, top, left + 15 * len(word), top + 24]])
    return boxes


def questions(path: str, model_class: str, config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> TaskCase:
    """Answers to questions, windows over a long page, no answer."""
    short = {"question": "Who sold the cloth?", "word_boxes": page(RECEIPT)}
    other = {"question": "What is the price?", "word_boxes": page(RECEIPT[3:11], 3)}
    long = {"question": "When was it?", "word_boxes": page(RECEIPT + RECEIPT[5:] + RECEIPT[2:9])}
    return TaskCase(
        f"{path}/tasks/document-question-answering",
        "document-question-answering",
        model_class,
        config,
        tokenizer,
        (
            Call(short),
            Call([short, other], {"top_k": 3}),
            Call(long, {"max_seq_len": 32, "doc_stride": 8, "top_k": 4, "max_answer_len": 4}),
            Call(other, {"handle_impossible_answer": True, "top_k": 2}),
        ),
        "One answer and several, windows over a long page, no answer.",
    )
