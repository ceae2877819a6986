"""Tasks of encoders around BERT: RoBERTa's, with a byte-level tokenizer and one kind of segments, those of XLM and
FlauBERT, whose classes have other names and whose texts have no segments, and Longformer's question answering.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast, RobertaConfig

from weft_reference import answers, document_tasks
from weft_reference.bytepair import roberta_tokenizer, vocabulary
from weft_reference.models.bert.tasks import ENTITIES, LONG, SENTENCES, labels
from weft_reference.tasks import Call, TaskCase
from weft_reference.wordpiece import SPECIAL, bert_tokenizer
from weft_reference.wordpiece import vocabulary as word_pieces

POSITIONS = 48


def case(name: str, task: str, head: str, notes: str, *calls: Call, **changes: Any) -> TaskCase:
    tiny = {
        "vocab_size": len(vocabulary()),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": POSITIONS + 2,
        "type_vocab_size": 1,
    }
    config = RobertaConfig(**(tiny | changes))
    return TaskCase(f"roberta/tasks/{name}", task, f"Roberta{head}", config, roberta_tokenizer(POSITIONS), calls, notes)


def goldens() -> Iterator[TaskCase]:
    yield from roberta()
    for model, prefix in (("xlm", "XLM"), ("flaubert", "Flaubert")):
        yield from without_segments(model, prefix)
    yield longformer()
    yield layoutlm()


def layoutlm() -> TaskCase:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.LayoutLMConfig(vocab_size=len(word_pieces()), max_position_embeddings=64, **sizes)
    return document_tasks.questions("layoutlm", "LayoutLMForQuestionAnswering", config, bert_tokenizer(64))


def one_segment() -> PreTrainedTokenizerBase:
    """BERT's tokenizer, which says nothing of segments."""
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL))
    return PreTrainedTokenizerFast(
        tokenizer_object=bert_tokenizer(POSITIONS).backend_tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=POSITIONS,
        **names,
    )


def without_segments(model: str, prefix: str) -> Iterator[TaskCase]:
    sizes = {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": POSITIONS}
    config = getattr(transformers, f"{prefix}Config")(vocab_size=len(word_pieces()), pad_index=0, **sizes)
    one, two = "The capital of France is [MASK].", "Bread, [MASK] and cheese were sold at the [MASK] on Saturday."
    yield TaskCase(
        f"{model}/tasks/fill-mask",
        "fill-mask",
        f"{prefix}WithLMHeadModel",
        config,
        one_segment(),
        (Call(one), Call([one, two], {"top_k": 2, "batch_size": 2})),
        "One mask and several; a batch with padding.",
    )
    letter = {"question": "Who wrote the letter?", "context": "The letter was written by Maria in the spring of 1921."}
    long = {"question": "What carries the thread?", "context": LONG}
    yield TaskCase(
        f"{model}/tasks/question-answering",
        "question-answering",
        f"{prefix}ForQuestionAnsweringSimple",
        config,
        one_segment(),
        (Call(letter), Call(letter, {"top_k": 3}), Call(long, {"max_seq_len": 32, "doc_stride": 8})),
        "Spans, several answers, windows over a long context.",
        answers=answers.question_answering,
    )


def longformer() -> TaskCase:
    """The question is global: three separators tell where it ends, in each window of a long context too."""
    letter = {"question": "Who wrote the letter?", "context": "The letter was written by Maria in the spring of 1921."}
    short = {"question": "What carries the thread across?", "context": "The shuttle."}
    long = {"question": "What carries the thread?", "context": LONG}
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.LongformerConfig(
        vocab_size=len(vocabulary()), max_position_embeddings=POSITIONS + 2, attention_window=8, **sizes
    )
    return TaskCase(
        "longformer/tasks/question-answering",
        "question-answering",
        "LongformerForQuestionAnswering",
        config,
        roberta_tokenizer(POSITIONS),
        (
            Call(letter),
            Call(short, {"top_k": 3}),
            Call(long, {"max_seq_len": 40, "doc_stride": 8}),
        ),
        "Spans, several answers, questions of different lengths, windows over a long context.",
        answers=answers.question_answering,
    )


def roberta() -> Iterator[TaskCase]:
    one, two = "The capital of France is <mask>.", "Bread, <mask> and cheese were sold at the <mask> on Saturday."
    yield case(
        "fill-mask",
        "fill-mask",
        "ForMaskedLM",
        "The mask takes the space before it; targets with and without a space; bytes of letters; truncation.",
        Call(one),
        Call([one, two], {"top_k": 2, "batch_size": 2}),
        Call(one, {"targets": [" town", "town", "Zanzibar"], "top_k": 3}),
        Call("Café <mask> 😀😎 東京 Żółć and IT'S   spaced", {"top_k": 3}),
        Call("<mask>", {"top_k": 2}),
        Call("The <mask> sleeps. " + LONG, {"top_k": 2, "tokenizer_kwargs": {"truncation": True}}),
    )
    good, bad = "I love this film: the music is beautiful.", "I hate this film: the ending makes no sense."
    pair = {"text": "The food was good.", "text_pair": "The food was bad."}
    yield case(
        "text-classification",
        "text-classification",
        "ForSequenceClassification",
        "Pairs without segments; batches with padding; texts without words; truncation.",
        Call(good),
        Call([good, bad, "No."], {"batch_size": 3, "top_k": None}),
        Call([pair, {"text": good, "text_pair": bad}], {"top_k": 1}),
        Call(""),
        Call("   \t\n"),
        Call("😎 ∑ ∫"),
        Call(LONG, {"truncation": True}),
        **labels(["terrible", "bad", "good", "wonderful"]),
    )
    strategies = ("none", "simple", "first", "average", "max")
    yield case(
        "token-classification",
        "token-classification",
        "ForTokenClassification",
        "Every aggregation strategy over words that begin with a space, accents, emoji and CJK.",
        *(Call(text, {"aggregation_strategy": strategy}) for strategy in strategies for text in SENTENCES[:2]),
        Call(SENTENCES[2], {"aggregation_strategy": "simple"}),
        Call(SENTENCES[:2], {"aggregation_strategy": "average", "batch_size": 2}),
        **labels(ENTITIES),
    )
    yield case(
        "feature-extraction",
        "feature-extraction",
        "Model",
        "Hidden states of every token.",
        Call("Café 東京."),
        Call(["The cat sleeps.", "No."], {"batch_size": 2}),
        hidden_size=8,
        num_attention_heads=2,
        intermediate_size=12,
    )
