"""RAG: BART and T5 as generators, marginalised and not, questions alone, passages of several lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.rag.retrieval_rag import RagRetriever
from transformers.models.rag.tokenization_rag import RagTokenizer

from weft_reference import stores
from weft_reference.bytepair import roberta_tokenizer
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import Padding, floats, text_batch
from weft_reference.models import bart, t5
from weft_reference.tasks import Answer, Call, TaskCase
from weft_reference.wordpiece import bert_tokenizer

QUESTION: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 20,
    "max_position_embeddings": 30,
    "type_vocab_size": 2,
}
PASSAGES = (13, 9, 4, 11, 13, 6)


class Retriever(RagRetriever):
    """The same passages for all questions: what the reference needs to give a question's embedding."""

    def __init__(self) -> None:
        pass

    def __call__(self, _ids: Any, vectors: np.ndarray, n_docs: int, **_: Any) -> dict[str, Any]:
        passages = text_batch(40, (5,) * n_docs * len(vectors), key="retrieved")
        embeds = floats("retrieved", (len(vectors), n_docs, vectors.shape[1]))
        found = {f"context_{name}": passages[name] for name in ("input_ids", "attention_mask")}
        found |= {"retrieved_doc_embeds": embeds, "doc_ids": np.zeros((len(vectors), n_docs), np.int64)}
        return transformers.BatchEncoding(found, tensor_type="pt")


def config(
    generator: transformers.PreTrainedConfig | None = None, question: dict[str, Any] | None = None, **changes: Any
) -> transformers.RagConfig:
    encoder = transformers.DPRConfig(**(QUESTION | (question or {})))
    generator = generator or transformers.BartConfig(**bart.TINY)
    return transformers.RagConfig.from_question_encoder_generator_configs(encoder, generator, **({"n_docs": 3} | changes))


def inputs(n_docs: int = 3, padding: Padding = "right", written: Padding = "none") -> dict[str, np.ndarray]:
    passages = text_batch(40, PASSAGES[: 2 * n_docs], padding, pad=1)
    read = {f"context_{name}": passages[name] for name in ("input_ids", "attention_mask")}
    scores = floats("doc_scores", (2, n_docs), -3.0, 3.0)
    return read | {"doc_scores": scores} | t5.decoder_text((7, 7) if written == "none" else (7, 5), written)


def question(padding: Padding = "right") -> dict[str, np.ndarray]:
    batch = text_batch(40, (11, 6), padding)
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def case(name: str, head: str, notes: str, given: Inputs, **changes: Any) -> Case:
    return Case(f"rag/{name}", f"Rag{head}", config(**changes), given, notes)


def asked(name: str, head: str, notes: str, given: Inputs, **changes: Any) -> Case:
    """A question alone, of whose passages nothing is compared."""
    made = case(name, head, notes, given, **changes)
    rest = ("logits", "doc_scores", "generator", "context", "retrieved", "question_enc_")
    return Case(**{**made.__dict__, "build": {"retriever": Retriever()}, "without": rest})


class Joined(RagRetriever):
    """Passages that are given, joined with the question as the reference joins what it finds."""

    def __init__(self, config: transformers.RagConfig, tokenizer: RagTokenizer) -> None:
        self.config, self.generator_tokenizer = config, tokenizer.generator


def answers(_task: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Answer:
    """The reference's `generate` over given passages: it has no pipeline for it, and takes no `max_new_tokens`."""
    joined = Joined(model.config, tokenizer)
    generate = model.generator.generate

    def masked(ids: torch.Tensor, **parameters: Any) -> Any:
        """RAG-Sequence leaves the mask to be told from padding, which `generate` does for decoders alone since release 5."""
        return generate(ids, **(parameters | {"attention_mask": ids.ne(model.config.generator.pad_token_id).long()}))

    model.generator.generate = masked

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        if isinstance(inputs, list):
            return [answer(one, parameters) for one in inputs]
        ids = tokenizer.question_encoder([inputs["question"]])["input_ids"]
        asked = tokenizer.question_encoder.batch_decode(ids, skip_special_tokens=True)
        found = inputs["passages"]
        docs = [{name: [passage[name] for passage in found] for name in ("title", "text")}]
        read, mask = joined.postprocess_docs(docs, asked, None, len(found), return_tensors="pt")
        scores = torch.tensor([[passage["score"] for passage in found]])
        given = {"context_input_ids": read, "context_attention_mask": mask, "doc_scores": scores}
        with torch.no_grad():
            written = model.generate(**given, n_docs=len(found), **parameters)
        texts = tokenizer.generator.batch_decode(written, skip_special_tokens=True)
        return [{"answer": text} for text in texts]

    return answer


PASSAGES_FOUND = [
    {"title": '"Weaving"', "text": "A warp thread and a weft thread  make cloth.", "score": 1.25},
    {"title": "Looms", "text": "The weaver throws the weft.", "score": 0.5},
    {"title": "", "text": "Good day.", "score": -0.75},
]


def task(name: str, head: str = "TokenForGeneration", **changes: Any) -> TaskCase:
    tokenizer = RagTokenizer(bert_tokenizer(30), roberta_tokenizer(128))
    question = {"vocab_size": len(tokenizer.question_encoder)}
    tokens = {"vocab_size": len(tokenizer.generator), "max_position_embeddings": 128, "init_std": 0.3}
    generator = transformers.BartConfig(**(bart.TINY | tokens))
    asked = {"question": "What does the weaver throw?", "passages": PASSAGES_FOUND}
    other = {"question": "Who makes cloth?", "passages": list(reversed(PASSAGES_FOUND))}
    calls = (
        Call(asked, {"max_length": 13, "no_repeat_ngram_size": 1}),
        Call(other, {"max_length": 10, "num_beams": 3, "no_repeat_ngram_size": 1}),
        Call(asked, {"max_length": 9, "num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.5}),
        Call([asked, other], {"max_length": 6}),
        Call(other),
    )
    return TaskCase(
        f"rag/tasks/{name}",
        "generative-question-answering",
        f"Rag{head}",
        config(generator, question, **changes),
        tokenizer,
        calls,
        "Greedy search and beams over three passages.",
        answers,
    )


def goldens() -> Iterator[Case | TaskCase]:
    yield task("generative-question-answering", max_combined_length=100)
    yield task("generative-question-answering-marginalized", do_marginalize=True, max_combined_length=24)
    yield task("generative-question-answering-sequence", "SequenceForGeneration", max_combined_length=100)
    both, t5_generator = inputs(), t5.config()
    yield case("base", "Model", "BART over three passages a question, of several lengths.", both)
    yield case("base-t5", "Model", "T5 as the generator.", both, generator=t5_generator)
    sequence, token = "SequenceForGeneration", "TokenForGeneration"
    yield case("sequence", sequence, "Logits of each passage; padding on the left.", inputs(padding="left"))
    yield case("token", token, "Logits of each passage.", both)
    notes = "Marginalised over passages; a decoder input with padding."
    yield case("token-marginalized", token, notes, inputs(written="right"), do_marginalize=True)
    notes = "T5, marginalised over two passages."
    yield case("token-t5", token, notes, inputs(2), generator=t5_generator, do_marginalize=True, n_docs=2)
    untied = transformers.BartConfig(**bart.TINY, tie_word_embeddings=False, scale_embedding=True)
    notes = "Scores of tokens of their own; one passage a question."
    yield case("untied", token, notes, inputs(1), generator=untied, n_docs=1, do_marginalize=True)
    yield asked("question", "Model", "The embeddings of questions, of two lengths.", question())
    notes = "Embeddings of another width; no mask: 0 is padding."
    ids = {"input_ids": question()["input_ids"]}
    yield asked("question-projected", token, notes, ids, question={"projection_dim": 10})
    for name, generator in (("file", None), ("file-t5", t5_generator)):
        stored = case(name, token, "model.safetensors as written.", both, generator=generator, do_marginalize=True)
        yield Case(**{**stored.__dict__, "store": stores.whole})
