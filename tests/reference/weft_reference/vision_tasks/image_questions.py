"""Captions of pictures and answers to questions about them, by the pipelines that release 5 has no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.image_utils import load_image

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.wordpiece import bert_tokenizer, vocabulary

# Tokens of the small vocabulary, and one after them that begins what BLIP writes.
PAD, CLS, SEP, BEGIN = 0, 2, 3, len(vocabulary())


def tokenizer(positions: int, begin: bool = False) -> PreTrainedTokenizerBase:
    made = bert_tokenizer(positions)
    if begin:
        made.add_special_tokens({"bos_token": "[DEC]"})
    return made


class Processors:
    """The image processor and the tokenizer of a folder; `BlipProcessor` leaves out types of tokens."""

    def __init__(self, model: PreTrainedModel, folder: Path) -> None:
        self.left_out = {"token_type_ids"} if model.can_generate() else set()
        self.image = transformers.AutoImageProcessor.from_pretrained(folder)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def __call__(self, picture: str, text: str | None) -> dict[str, Any]:
        inputs = dict(self.image(images=load_image(picture), return_tensors="pt"))
        if text is not None:
            inputs |= self.tokenizer(text, return_tensors="pt")
        return {name: value for name, value in inputs.items() if name not in self.left_out}


def generating(parameters: dict[str, Any]) -> dict[str, Any]:
    """What goes to `generate`: 256 new tokens where nothing else is said."""
    given = {**parameters.pop("generate_kwargs", {}), **parameters}
    return given if "max_length" in given else {"max_new_tokens": 256} | given


def captions(_: str, model: PreTrainedModel, folder: Path) -> Answer:
    """What `ImageToTextPipeline` does in release 4.57."""
    processors = Processors(model, folder)

    def one(picture: str, parameters: dict[str, Any]) -> list[dict[str, str]]:
        prompt = parameters.pop("prompt", None)
        inputs = processors(picture, prompt)
        written = model.generate(inputs.pop(model.main_input_name), **inputs, **generating(parameters))
        return [{"generated_text": processors.tokenizer.decode(ids, skip_special_tokens=True)} for ids in written]

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        if isinstance(inputs, str):
            return one(inputs, parameters)
        return [one(picture, dict(parameters)) for picture in inputs]

    return answer


def replies(_: str, model: PreTrainedModel, folder: Path) -> Answer:
    """What `VisualQuestionAnsweringPipeline` does in release 4.57."""
    processors = Processors(model, folder)

    def one(asked: dict[str, str], parameters: dict[str, Any]) -> list[dict[str, Any]]:
        top_k = min(parameters.pop("top_k", 5), getattr(model.config, "num_labels", 5))
        inputs = processors(asked["image"], asked["question"])
        if model.can_generate():
            written = model.generate(**inputs, **generating(parameters))
            return [{"answer": processors.tokenizer.decode(ids, skip_special_tokens=True).strip()} for ids in written]
        with torch.no_grad():
            scores, ids = model(**inputs).logits.sigmoid()[0].topk(top_k)
        return [{"score": score, "answer": model.config.id2label[index]} for score, index in zip(scores.tolist(), ids.tolist())]

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        if isinstance(inputs, dict):
            return one(inputs, parameters)
        return [one(asked, dict(parameters)) for asked in inputs]

    return answer


SHORT = {"max_new_tokens": 6}


def image_to_text(
    path: str, model_class: str, config: PreTrainedConfig, processor: Any, made: PreTrainedTokenizerBase, prompted: bool, generation: dict[str, Any] | None = None
) -> VisionTaskCase:
    """Pictures alone and in a list, beams, and a prompt where the model takes one."""
    beams = {"generate_kwargs": {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 4}}
    calls = [Call("rgb.png", SHORT), Call(["tall.png", "wide.png"], SHORT), Call("wide.png", beams)]
    if prompted:
        calls += [Call("tall.png", {"prompt": "the weaver and", **SHORT}), Call("rgb.png", {"prompt": "a loom", **beams})]
    return VisionTaskCase(
        f"{path}/tasks/image-to-text",
        "image-to-text",
        model_class,
        config,
        processor,
        tuple(calls),
        "Pictures alone and in a list, beams" + (", prompts." if prompted else "."),
        tokenizer=made,
        answers=captions,
        generation=generation,
    )


def visual_question_answering(
    path: str, model_class: str, config: PreTrainedConfig, processor: Any, made: PreTrainedTokenizerBase, parameters: dict[str, Any]
) -> Iterator[VisionTaskCase]:
    """Questions alone and in a list; `parameters` of one."""
    asked = [
        {"image": "rgb.png", "question": "What is this?"},
        {"image": "tall.png", "question": "Is the cloth wide?"},
        {"image": "wide.png", "question": "Who throws the shuttle across the warp?"},
    ]
    short = {} if "top_k" in parameters else SHORT
    yield VisionTaskCase(
        f"{path}/tasks/visual-question-answering",
        "visual-question-answering",
        model_class,
        config,
        processor,
        (Call(asked[0], short), Call(asked[1:], short), Call(asked[1], parameters)),
        "Questions alone and in a list.",
        tokenizer=made,
        answers=replies,
    )
