"""BERT's tasks: text in, structured answers out, equal to `transformers.pipeline` on tiny checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from transformers import BertConfig

from weft_reference import answers
from weft_reference.tasks import Call, TaskCase
from weft_reference.wordpiece import bert_tokenizer, vocabulary

POSITIONS = 48
LONG = " ".join(["The weaver sets the warp on the loom before the first thread of the weft is thrown."] * 5)
ENTITIES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
SENTENCES = [
    "John Smith sold his house in Boston.",
    "Maria lives in Zürich, but her sister Élodie Müller-Keller works for Microsoft in São Paulo.",
    "naïve café 😀😎 東京大学 Москва unbelievably incomprehensible",
]


def config(**changes: Any) -> BertConfig:
    tiny = {
        "vocab_size": len(vocabulary()),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": POSITIONS,
    }
    return BertConfig(**(tiny | changes))


def labels(names: list[str]) -> dict[str, Any]:
    return {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}


def case(
    name: str, task: str, model_class: str, notes: str, *calls: Call, lower: bool = True, **changes: Any
) -> TaskCase:
    tokenizer = bert_tokenizer(POSITIONS, lower)
    return TaskCase(f"bert/tasks/{name}", task, model_class, config(**changes), tokenizer, calls, notes)


def goldens() -> Iterator[TaskCase]:
    yield from fill_mask()
    yield from text_classification()
    yield from zero_shot_classification()
    yield from token_classification()
    yield from feature_extraction()
    yield from question_answering()


def fill_mask() -> Iterator[TaskCase]:
    one, two = "The capital of France is [MASK].", "Bread, [MASK] and cheese were sold at the [MASK] on Saturday."
    targets = ["paris", "london", "berlin"]
    yield case(
        "fill-mask",
        "fill-mask",
        "BertForMaskedLM",
        "One mask and several, targets in and out of the vocabulary, batches, truncation.",
        Call(one),
        Call(one, {"top_k": 1}),
        Call(one, {"top_k": 12}),
        Call([one]),
        Call([one, "He ordered a [MASK] au lait, as he did every Sunday."], {"top_k": 3}),
        Call([one, two], {"top_k": 2, "batch_size": 2}),
        Call(two, {"top_k": 2}),
        Call(one, {"targets": targets}),
        Call(one, {"targets": "tokyo", "top_k": 4}),
        Call(one, {"targets": ["paris", "paris", "Zanzibar", "cafés"], "top_k": 2}),
        Call(two, {"targets": targets, "top_k": 2}),
        Call("Café [MASK] 😀😎 東京 Żółć and IT'S   spaced", {"top_k": 3}),
        Call("[MASK]", {"top_k": 2}),
        Call("The [MASK] sleeps. " + LONG, {"top_k": 2, "tokenizer_kwargs": {"truncation": True}}),
    )
    yield case(
        "fill-mask-cased",
        "fill-mask",
        "BertForMaskedLM",
        "A tokenizer that keeps case: most words are unknown.",
        Call("The capital of france is [MASK].", {"top_k": 3}),
        lower=False,
    )


def text_classification() -> Iterator[TaskCase]:
    good, bad = "I love this film: the music is beautiful.", "I hate this film: the ending makes no sense."
    pair = {"text": "The food was good.", "text_pair": "The food was bad."}
    yield case(
        "text-classification",
        "text-classification",
        "BertForSequenceClassification",
        "Softmax over four labels; pairs; batches; every function; texts without words; truncation.",
        Call(good),
        Call([good]),
        Call([good, bad, "café 東京 😀"]),
        Call([good, bad], {"top_k": None}),
        Call([good, bad, "No."], {"batch_size": 3, "top_k": 2}),
        Call(good, {"top_k": None}),
        Call(good, {"top_k": 1}),
        Call(bad, {"top_k": 10}),
        Call(pair),
        Call(pair, {"top_k": 2}),
        Call([pair, {"text": good, "text_pair": bad}], {"top_k": 1}),
        Call(good, {"function_to_apply": "sigmoid", "top_k": None}),
        Call(good, {"function_to_apply": "none", "top_k": None}),
        Call(good, {"function_to_apply": "softmax"}),
        Call(""),
        Call("   \t\n"),
        Call("😎 ∑ ∫"),
        Call(LONG, {"truncation": True}),
        Call(LONG, {"truncation": True, "max_length": 16, "top_k": 2}),
        **labels(["terrible", "bad", "good", "wonderful"]),
    )
    yield case(
        "text-classification-default-labels",
        "text-classification",
        "BertForSequenceClassification",
        "LABEL_0 and LABEL_1.",
        Call(good),
        Call([bad, good]),
    )
    yield case(
        "text-classification-multi-label",
        "text-classification",
        "BertForSequenceClassification",
        "problem_type multi_label_classification: sigmoid.",
        Call(good),
        Call([good, bad], {"top_k": None}),
        Call(good, {"function_to_apply": "softmax", "top_k": None}),
        problem_type="multi_label_classification",
        **labels(["story", "music", "actors"]),
    )
    yield case(
        "text-classification-single-logit",
        "text-classification",
        "BertForSequenceClassification",
        "One label without problem_type: sigmoid.",
        Call(good),
        Call([good, bad], {"top_k": None}),
        **labels(["positive"]),
    )
    yield case(
        "text-classification-regression",
        "text-classification",
        "BertForSequenceClassification",
        "problem_type regression: the raw number.",
        Call(good),
        Call([good, bad]),
        Call([pair, pair]),
        problem_type="regression",
        **labels(["similarity"]),
    )


def zero_shot_classification() -> Iterator[TaskCase]:
    """Labels whose scores are far enough apart for half precision."""
    text, other = "My phone fell into the river on Sunday.", "The museum shows maps of the old town."
    naive = "unbelievably naïve plans"

    def some(*labels: str, **more: Any) -> dict[str, Any]:
        return {"candidate_labels": list(labels)} | more

    told = {"hypothesis_template": "{} is what this tells of!"}
    each = {"multi_label": True}
    for suffix, names, notes in (
        ("", ["contradiction", "neutral", "Entailment"], "One text and several, one label, each for itself, long texts."),
        ("-first", ["ENTAILMENT", "neutral", "contradiction"], "Entailment is the first label of the model."),
    ):
        yield case(
            f"zero-shot-classification{suffix}",
            "zero-shot-classification",
            "BertForSequenceClassification",
            notes,
            Call(text, some("music and film", "a letter", naive)),
            Call([text], some("music and film", "a letter", naive)),
            Call([other, text], some("a letter", "cats, dogs and birds")),
            Call(text, some("weaving", "cats, dogs and birds", "1921", **told)),
            Call(other, some("art", "maps of towns", "water that boils", **told)),
            Call(text, some("music and film", "weaving", "cats, dogs and birds", **each)),
            Call([other, text], some("music and film", "cats, dogs and birds", **told, **each)),
            Call(other, some("a letter", "😀", "cats, dogs and birds")),
            Call(text, some("alone")),
            Call(text, {"candidate_labels": "music and film, a letter , ," + naive}),
            Call(LONG, some("a letter", naive, "😀")),
            Call(LONG, some("accident", naive, "1921", **each)),
            **labels(names),
        )


def token_classification() -> Iterator[TaskCase]:
    strategies = ("none", "simple", "first", "average", "max")
    each = [Call(text, {"aggregation_strategy": strategy}) for strategy in strategies for text in SENTENCES]
    yield case(
        "token-classification",
        "token-classification",
        "BertForTokenClassification",
        "Every aggregation strategy over accents, emoji, CJK and unknown words; ignored labels; chunks; split words.",
        *each,
        Call(SENTENCES[1]),
        Call(SENTENCES),
        Call([SENTENCES[0]], {"aggregation_strategy": "simple"}),
        Call(SENTENCES, {"aggregation_strategy": "average", "batch_size": 3}),
        Call(SENTENCES[1], {"ignore_labels": []}),
        Call(SENTENCES[1], {"ignore_labels": [], "aggregation_strategy": "simple"}),
        Call(SENTENCES[1], {"ignore_labels": ["O", "PER", "B-LOC"], "aggregation_strategy": "first"}),
        Call(SENTENCES[0], {"ignore_labels": ENTITIES}),
        Call(""),
        Call("", {"aggregation_strategy": "max"}),
        Call(LONG, {"aggregation_strategy": "simple"}),
        Call(LONG, {"aggregation_strategy": "first", "stride": 6}),
        Call(LONG, {"aggregation_strategy": "simple", "stride": 0}),
        Call(["Laura", "Rossi", "visits", "São", "Paulo"], {"is_split_into_words": True}),
        Call(
            ["Laura", "Rossi", "visits", "São", "Paulo"],
            {"is_split_into_words": True, "aggregation_strategy": "simple", "delimiter": "_"},
        ),
        hidden_size=24,
        **labels(ENTITIES),
    )
    tags = ["NOUN", "VERB", "PROPN", "ADJ-X"]
    yield case(
        "token-classification-plain-labels",
        "token-classification",
        "BertForTokenClassification",
        "Labels without B- and I-: neighbours of one label join.",
        *(Call(SENTENCES[1], {"aggregation_strategy": strategy}) for strategy in strategies),
        hidden_size=24,
        **labels(tags),
    )


def feature_extraction() -> Iterator[TaskCase]:
    yield case(
        "feature-extraction",
        "feature-extraction",
        "BertModel",
        "Hidden states of every token as nested lists, one batch dimension a text.",
        Call("Café 東京."),
        Call(["The cat sleeps.", "Water boils at one hundred degrees."]),
        Call(["The cat sleeps.", "No."], {"batch_size": 2}),
        Call(""),
        Call("The naïve plan failed.", {"tokenize_kwargs": {"padding": "max_length", "max_length": 12}}),
        Call(LONG, {"truncation": True, "tokenize_kwargs": {"max_length": 7}}),
        hidden_size=8,
        num_attention_heads=2,
        intermediate_size=12,
    )


def question_answering() -> Iterator[TaskCase]:
    letter = {
        "question": "Who wrote the letter?",
        "context": "The letter was written by Maria Müller-Keller in the spring of 1921, in São Paulo.",
    }
    museum = {
        "question": "When was the museum opened?",
        "context": "The museum was opened in 1898 by the mayor of the town. The MUSEUM keeps maps.",
    }
    unknown = {"question": "Qué? 😀", "context": "東京大学 — naïve café 😎 Москва; unbelievable, incomprehensible."}
    long = {"question": "What carries the thread?", "context": LONG + " A shuttle carries the thread. " + LONG}
    yield replace(
        case(
            "question-answering",
            "question-answering",
            "BertForQuestionAnswering",
            "Spans over words and tokens, several answers, windows over a long context, no answer.",
            Call(letter),
            Call([letter]),
            Call([letter, museum, unknown]),
            Call(letter, {"top_k": 3}),
            Call(museum, {"top_k": 4, "max_answer_len": 3}),
            Call(museum, {"top_k": 2, "max_answer_len": 1}),
            Call(letter, {"align_to_words": False}),
            Call(letter, {"align_to_words": False, "top_k": 5}),
            Call(unknown, {"top_k": 3}),
            Call(unknown, {"top_k": 2, "align_to_words": False}),
            Call(long),
            Call(long, {"top_k": 3, "max_seq_len": 24, "doc_stride": 8}),
            Call(long, {"max_seq_len": 40, "doc_stride": 0, "top_k": 2}),
            Call(letter, {"handle_impossible_answer": True, "top_k": 3}),
            Call(unknown, {"handle_impossible_answer": True, "top_k": 60}),
            Call({"question": "No?", "context": "Nothing."}, {"handle_impossible_answer": True}),
            Call([letter, long], {"handle_impossible_answer": True}),
            Call(long, {"handle_impossible_answer": True, "top_k": 20, "max_seq_len": 30, "doc_stride": 10}),
        ),
        answers=answers.question_answering,
    )
