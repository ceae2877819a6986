"""LLaVA's task, and LLaVA-NeXT's: texts and chats with pictures in them that are continued."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import (
    Gemma3Config,
    Gemma3ImageProcessorPil,
    Gemma3Processor,
    GotOcr2ImageProcessorPil,
    InternVLConfig,
    InternVLProcessor,
    LlavaImageProcessorPil,
    LlavaNextImageProcessorPil,
    LlavaNextProcessor,
    LlavaProcessor,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.wordpiece import bert_tokenizer, vocabulary

TOKEN = "<image>"
# The tokens that mark the two sides of a chat are words of the small vocabulary.
TEMPLATE = (
    "{% for m in messages %}{{ m.role }} : {% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{% if part.type == 'image' %}<image>{% else %} {{ part.text }} {% endif %}{% endfor %}"
    "{% endif %}\n{% endfor %}{% if add_generation_prompt %}assistant :{% endif %}"
)


def tokenizer(positions: int) -> PreTrainedTokenizerBase:
    made = bert_tokenizer(positions)
    made.add_special_tokens({"additional_special_tokens": [TOKEN]})
    made.chat_template = TEMPLATE
    return made


def vocab_size() -> int:
    return len(vocabulary()) + 1


def answers(task: str, model: PreTrainedModel, folder: Path, processor: Any = None) -> Answer:
    made = transformers.pipeline(
        task,
        model=model,
        processor=processor or transformers.AutoProcessor.from_pretrained(folder),
        device="cpu",
        dtype=torch.float32,
    )

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        if isinstance(inputs, list) and isinstance(inputs[0], dict) and "role" in inputs[0]:
            return made(text=inputs, **parameters)
        if isinstance(inputs, list):
            return [made(inputs, **parameters) for inputs in inputs]
        if isinstance(inputs, str):
            return made(text=inputs, **parameters)
        return made(inputs, **parameters)

    return answer


def tasks(path: str, config: PreTrainedConfig, tiles: bool, name: str = "") -> Iterator[VisionTaskCase]:
    """`config` is a tiny one with `vocab_size` tokens, of which the last is the picture's."""
    vision = config.vision_config
    edge = vision.image_size
    sizes = {"size": {"shortest_edge": edge}, "crop_size": {"height": edge, "width": edge}}
    image: Any = LlavaImageProcessorPil(**sizes)
    kind: Any = LlavaProcessor
    if tiles:
        image = LlavaNextImageProcessorPil(**sizes, image_grid_pinpoints=config.image_grid_pinpoints)
        kind = LlavaNextProcessor
    processor = kind(
        image_processor=image,
        tokenizer=tokenizer(config.text_config.max_position_embeddings),
        patch_size=vision.patch_size,
        vision_feature_select_strategy=getattr(config, "vision_feature_select_strategy", "default"),
        chat_template=TEMPLATE,
        num_additional_image_tokens=0 if vision.model_type == "siglip_vision_model" else 1,
    )
    short = {"max_new_tokens": 6}
    question = [{"type": "text", "text": "What is it?"}, {"type": "image", "path": "tall.png"}]
    yield VisionTaskCase(
        f"{path}/tasks/image-text-to-text{name}",
        "image-text-to-text",
        type(config).__name__.replace("Config", "ForConditionalGeneration"),
        config,
        processor,
        (
            Call({"images": "rgb.png", "text": f"user : {TOKEN} What is this? assistant :"}, short),
            Call({"images": ["tall.png", "wide.png"], "text": f"{TOKEN} and {TOKEN} are cloth"}, short),
            Call([{"images": "wide.png", "text": f"a loom {TOKEN}"}], short | {"return_full_text": False}),
            Call([{"role": "user", "content": question}], short | {"return_full_text": False}),
            Call("the shuttle carries the weft", short),
            Call("a loom is", {"return_full_text": False, "generate_kwargs": {"num_beams": 2, "max_new_tokens": 3}}),
            Call([{"role": "user", "content": question[:1]}], {"max_new_tokens": 4}),
        ),
        "One picture, two in a text, several inputs, a chat; texts and a chat without pictures.",
        answers=answers,
    )


def named(positions: int, template: str, **tokens: str) -> PreTrainedTokenizerBase:
    """The small tokenizer with more tokens at its end, which it knows by names."""
    base = bert_tokenizer(positions)
    base.add_special_tokens({"additional_special_tokens": list(tokens.values())})
    with tempfile.TemporaryDirectory() as temporary:
        base.save_pretrained(temporary)
        return transformers.AutoTokenizer.from_pretrained(temporary, extra_special_tokens=tokens, chat_template=template)


def soft_tokens(config: Gemma3Config) -> Iterator[VisionTaskCase]:
    """Gemma 3's: a picture stands between two tokens of its own. `config`'s last three tokens are the picture's."""
    template = TEMPLATE.replace(TOKEN, "<begin>")
    names = {"boi_token": "<begin>", "eoi_token": "<end>", "image_token": "<soft>"}
    made = named(config.text_config.max_position_embeddings, template, **names)
    edge = config.vision_config.image_size
    processor = Gemma3Processor(
        image_processor=Gemma3ImageProcessorPil(size={"height": edge, "width": edge}),
        tokenizer=made,
        chat_template=template,
        image_seq_length=config.mm_tokens_per_image,
    )
    short = {"max_new_tokens": 6}
    question = [{"type": "text", "text": "What is it?"}, {"type": "image", "path": "tall.png"}]
    yield VisionTaskCase(
        "gemma3/tasks/image-text-to-text",
        "image-text-to-text",
        "Gemma3ForConditionalGeneration",
        config,
        processor,
        (
            Call({"images": "rgb.png", "text": "user : <begin> What is this? assistant :"}, short),
            Call({"images": ["tall.png", "wide.png"], "text": "<begin> and <begin> are cloth"}, short),
            Call([{"role": "user", "content": question}], short | {"return_full_text": False}),
            Call("the shuttle carries the weft", short),
        ),
        "One picture, two in a text, a chat, a text without pictures.",
        answers=answers,
    )


class StillProcessor(InternVLProcessor):
    """InternVL's without the part for videos, which cannot be made here."""

    def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
        return argument if argument is None else super().check_argument_for_proper_class(argument_name, argument)

    def save_pretrained(self, folder: Path) -> None:
        """As published: a file for pictures, one for texts, and one for both."""
        self.image_processor.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        both = {"image_seq_length": self.image_seq_length, "processor_class": "InternVLProcessor"}
        (folder / "processor_config.json").write_text(json.dumps(both, indent=2) + "\n")


StillProcessor.__name__ = "InternVLProcessor"


def tiles(config: InternVLConfig) -> Iterator[VisionTaskCase]:
    """InternVL's: a picture is cut into tiles that it fills. `config`'s last four tokens are the picture's and a video's."""
    template = TEMPLATE.replace(TOKEN, "<part>")
    names = {
        "start_image_token": "<begin>",
        "end_image_token": "<end>",
        "context_image_token": "<part>",
        "video_token": "<video>",
    }
    made = named(config.text_config.max_position_embeddings, template, **names)
    made.model_input_names = ["input_ids", "attention_mask"]
    height, width = config.vision_config.image_size
    size = {"height": height, "width": width}
    processor = StillProcessor(
        image_processor=GotOcr2ImageProcessorPil(size=size, max_patches=6),
        tokenizer=made,
        chat_template=template,
        image_seq_length=config.image_seq_length,
    )
    short = {"max_new_tokens": 6}
    question = [{"type": "text", "text": "What is it?"}, {"type": "image", "path": "tall.png"}]
    yield VisionTaskCase(
        "internvl/tasks/image-text-to-text",
        "image-text-to-text",
        "InternVLForConditionalGeneration",
        config,
        processor,
        (
            Call({"images": "rgb.png", "text": "user : <part> What is this? assistant :"}, short),
            Call({"images": ["tall.png", "wide.png"], "text": "<part> and <part> are cloth"}, short),
            Call([{"role": "user", "content": question}], short | {"return_full_text": False}),
            Call("the shuttle carries the weft", short),
        ),
        "One picture, two in a text, a chat, a text without pictures.",
        answers=partial(answers, processor=processor),
    )
