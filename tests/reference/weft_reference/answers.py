"""Extractive question answering: the algorithm of the pipeline that `transformers` last shipped in release 4.

Release 5 has the models but no pipeline, so this module says what an answer is. `inputs` is
`{"question", "context"}` or a list of such.

1. Encode question and context as a pair of at most `max_seq_len` tokens (default: the smaller of the
   tokenizer's limit and 384), cutting the context into windows that overlap by `doc_stride` tokens (default:
   the smaller of half of max_seq_len and 128).
2. For each window, run the model. Tokens of the context and [CLS] take part; every other logit becomes
   -10000. Softmax start and end logits over the window. The window's null score is start[CLS] * end[CLS];
   then both are set to 0.
3. The score of the span (s, e) with s <= e < s + max_answer_len is start[s] * end[e]. Rank all spans by
   score (equal scores: smaller s, then smaller e) and keep the first `top_k` of them, or `top_k * 2 + 10`
   with `align_to_words`. Then drop spans that do not begin and end in the context.
4. A span's characters run from the beginning of its first token to the end of its last one; with
   `align_to_words`, of the words that hold these tokens.
5. Spans of all windows in order: one whose text equals that of an earlier answer, letter case aside, adds its
   score to that answer; any other is a further answer {"score", "start", "end", "answer"}.
6. With `handle_impossible_answer`, add an empty answer (0, 0) with the smallest null score of all windows.
7. Sort by score, highest first, stable; keep `top_k`. One answer is returned by itself, several as a list; a
   list with one question is answered as the question itself.

From very short contexts the pipeline could also return spans of score 0, which end before they begin or lie
on [CLS]; they are no answers here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tokenizers import Encoding
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from weft_reference.tasks import TOO_CLOSE, Answer

CONTEXT = 1


def question_answering(_task: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Answer:
    """The function that answers calls."""

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        questions = inputs if isinstance(inputs, list) else [inputs]
        found = [answer_one(model, tokenizer, q["question"], q["context"], **parameters) for q in questions]
        return found[0] if len(found) == 1 else found

    return answer


def answer_one(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    question: str,
    context: str,
    top_k: int = 1,
    max_answer_len: int = 15,
    handle_impossible_answer: bool = False,
    align_to_words: bool = True,
    max_seq_len: int | None = None,
    doc_stride: int | None = None,
) -> Any:
    limit = max_seq_len or min(tokenizer.model_max_length, 384)
    stride = min(limit // 2, 128) if doc_stride is None else doc_stride
    windows = tokenizer(
        question,
        context,
        truncation="only_second",
        max_length=limit,
        stride=stride,
        return_overflowing_tokens=True,
    ).encodings
    answers: list[dict[str, Any]] = []
    null_score = float("inf")
    for window in windows:
        start, end = logits(model, tokenizer, window)
        context_tokens = np.array([s == CONTEXT for s in window.sequence_ids])
        allowed = context_tokens | (np.array(window.ids) == tokenizer.cls_token_id)
        start, end = probabilities(start, allowed), probabilities(end, allowed)
        null_score = min(null_score, float(start[0] * end[0]))
        start[0] = end[0] = 0.0
        keep = top_k * 2 + 10 if align_to_words else top_k
        for s, e, score in spans(start, end, max_answer_len, keep):
            if not (context_tokens[s] and context_tokens[e]):
                continue
            first, last = characters(window, s, e, align_to_words)
            text = context[first:last]
            same = next((a for a in answers if a["answer"].lower() == text.lower()), None)
            if same is None:
                answers.append({"score": score, "start": first, "end": last, "answer": text})
            else:
                same["score"] += score
    if handle_impossible_answer:
        answers.append({"score": null_score, "start": 0, "end": 0, "answer": ""})
    best = sorted(answers, key=lambda a: a["score"], reverse=True)[:top_k]
    return best[0] if len(best) == 1 else best


def logits(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, window: Encoding
) -> tuple[np.ndarray, np.ndarray]:
    inputs = {"input_ids": window.ids, "attention_mask": window.attention_mask, "token_type_ids": window.type_ids}
    names = {"input_ids", *tokenizer.model_input_names}
    output = model(**{name: torch.tensor([values]) for name, values in inputs.items() if name in names})
    return output.start_logits[0].numpy(), output.end_logits[0].numpy()


def probabilities(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    values = np.where(allowed, values, np.float32(-10000.0))
    raised = np.exp(values - values.max())
    return raised / raised.sum()


def spans(start: np.ndarray, end: np.ndarray, longest: int, keep: int) -> list[tuple[int, int, float]]:
    candidates = [
        (s, e, float(start[s] * end[e])) for s in range(len(start)) for e in range(s, min(s + longest, len(end)))
    ]
    ranked = sorted(candidates, key=lambda span: -span[2])
    if len(ranked) > keep and 0 < ranked[keep - 1][2] - ranked[keep][2] < TOO_CLOSE * ranked[keep][2]:
        raise ValueError("which spans are kept hangs on the last bits of two scores; choose another input")
    return ranked[:keep]


def characters(window: Encoding, s: int, e: int, align_to_words: bool) -> tuple[int, int]:
    if align_to_words:
        first = window.word_to_chars(window.token_to_word(s), CONTEXT)
        last = window.word_to_chars(window.token_to_word(e), CONTEXT)
        return first[0], last[1]
    return window.offsets[s][0], window.offsets[e][1]
