"""How well texts go with pictures, and which pages answer queries: of neither makes the reference a pipeline."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.image_utils import load_image

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.image_questions import Processors


def matches(_: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The probability of the second of two classes, or the only logit, of each text with its picture."""
    processors = Processors(model, folder)
    processors.left_out = {"token_type_ids"} if "token_type_ids" not in inputs_of(model) else set()

    def score(picture: str, text: str) -> dict[str, Any]:
        with torch.no_grad():
            output = model(**processors(picture, text))
        logits = output["itm_score"] if "itm_score" in output else output["logits"]
        scores = logits[0] if logits.shape[-1] == 1 else logits[0].softmax(dim=-1)
        return {"text": text, "score": scores[-1].item()}

    def one(given: dict[str, Any]) -> list[dict[str, Any]]:
        texts = [given["text"]] if isinstance(given["text"], str) else given["text"]
        return [score(given["image"], text) for text in texts]

    def answer(inputs: Any, _: dict[str, Any]) -> Any:
        return one(inputs) if isinstance(inputs, dict) else [one(given) for given in inputs]

    return answer


def inputs_of(model: PreTrainedModel) -> list[str]:
    code = type(model).forward
    return list(getattr(code, "__wrapped__", code).__code__.co_varnames)


def image_text_matching(
    path: str, model_class: str, config: PreTrainedConfig, processor: Any, made: PreTrainedTokenizerBase
) -> VisionTaskCase:
    """One text, and several of several pictures."""
    texts = ["the cloth is wide", "a shuttle carries the weft across the warp", "bread"]
    return VisionTaskCase(
        f"{path}/tasks/image-text-matching",
        "image-text-matching",
        model_class,
        config,
        processor,
        (
            Call({"image": "rgb.png", "text": texts[0]}),
            Call([{"image": "tall.png", "text": texts}, {"image": "wide.png", "text": texts[1:]}]),
        ),
        "One text, and several of several pictures.",
        tokenizer=made,
        answers=matches,
    )


def retrieved(_: str, model: PreTrainedModel, __: Path, processor: Any) -> Answer:
    """Each query and each page by itself, and the reference's scores of all."""

    @torch.no_grad()
    def answer(inputs: Any, _: dict[str, Any]) -> Any:
        queries = [model(**processor.process_queries([query])).embeddings[0] for query in inputs["queries"]]
        pages = [load_image(page) for page in inputs["images"]]
        passages = [model(**processor.process_images([page])).embeddings[0] for page in pages]
        return processor.score_retrieval(queries, passages).tolist()

    return answer


def retrieval(path: str, model_class: str, config: PreTrainedConfig, processor: Any) -> VisionTaskCase:
    """Queries and pages of several sizes."""
    queries = ["Who throws the shuttle?", "What is the price of the wide cloth?"]
    return VisionTaskCase(
        f"{path}/tasks/visual-document-retrieval",
        "visual-document-retrieval",
        model_class,
        config,
        processor,
        (
            Call({"queries": queries[:1], "images": ["rgb.png"]}),
            Call({"queries": queries, "images": ["tall.png", "wide.png", "rgb.png"]}),
        ),
        "Queries with pages of several sizes.",
        answers=partial(retrieved, processor=processor),
    )


def unmarked(made: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """The tokenizer without tokens of its own around a text."""
    made.backend_tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B")
    return made
