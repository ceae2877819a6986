"""The tasks of decoders that read images, each with its processor: texts and chats with pictures in them that are continued."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import (
    AyaVisionProcessor,
    Cohere2VisionProcessor,
    GotOcr2ImageProcessorPil,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
    PaliGemmaProcessor,
    PreTrainedTokenizerBase,
    SiglipImageProcessorPil,
)

from transformers.processing_utils import ProcessorMixin

from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import TEMPLATE, TOKEN, answers, named
from weft_reference.vision_tasks.source_functions import functions
from weft_reference.wordpiece import vocabulary

if TYPE_CHECKING:
    from weft_reference.models.vision_language.family import Family

POSITIONS = 400


def added(token: str, tokens: dict[str, str], **changes: Any) -> tuple[PreTrainedTokenizerBase, dict[str, Any]]:
    """The small tokenizer with these tokens at its end, whose chats have `token` for a picture; and the text model's fields."""
    made = named(POSITIONS, TEMPLATE.replace(TOKEN, token), **tokens)
    made.model_input_names = ["input_ids", "attention_mask"]
    return made, {"vocab_size": len(vocabulary()) + len(tokens), "max_position_embeddings": POSITIONS} | changes


def asked(family: Family, config: Any, processor: Any, token: str, name: str = "") -> Iterator[VisionTaskCase]:
    """One picture, two in a text, a chat, a text without pictures."""
    short = {"max_new_tokens": 6}
    question = [{"type": "text", "text": "What is it?"}, {"type": "image", "path": "tall.png"}]
    yield VisionTaskCase(
        f"{family.model}/tasks/image-text-to-text{name}",
        "image-text-to-text",
        f"{family.prefix}ForConditionalGeneration",
        config,
        processor,
        (
            Call({"images": "rgb.png", "text": f"user : {token} What is this? assistant :"}, short),
            Call({"images": ["tall.png", "wide.png"], "text": f"{token} and {token} are cloth"}, short),
            Call([{"role": "user", "content": question}], short | {"return_full_text": False}),
            Call("the shuttle carries the weft", short),
        ),
        "One picture, two in a text, a chat, a text without pictures.",
        answers=partial(answers, processor=processor),
    )


def aya_vision(family: Family) -> Iterator[VisionTaskCase]:
    """Tiles by their numbers, and the whole picture after them."""
    tokens = {"image": "<image>", "part": "<|IMG_PATCH|>", "begin": "<|START_OF_IMG|>", "end": "<|END_OF_IMG|>"}
    made, text = added("<image>", tokens)
    config = family.config(text=text, image_token_index=made.convert_tokens_to_ids("<|IMG_PATCH|>"))
    processor = AyaVisionProcessor(
        image_processor=GotOcr2ImageProcessorPil(size={"height": 16, "width": 16}, max_patches=4),
        tokenizer=made,
        patch_size=4,
        img_size=16,
        downsample_factor=2,
        chat_template=made.chat_template,
    )
    yield from asked(family, config, processor, "<image>")


class LeastScaled(GotOcr2ImageProcessorPil):
    """Cohere 2 Vision's on Pillow: GOT-OCR 2's with another choice of tiles."""

    def _preprocess(self, *args: Any, **kwargs: Any) -> Any:
        from transformers.models.got_ocr2 import image_processing_pil_got_ocr2 as module

        before = module.get_optimal_tiled_canvas
        module.get_optimal_tiled_canvas = functions("cohere2_vision", np=np, lru_cache=lru_cache)["get_optimal_tiled_canvas"]
        try:
            return super()._preprocess(*args, **kwargs)
        finally:
            module.get_optimal_tiled_canvas = before


LeastScaled.__name__ = "Cohere2VisionImageProcessor"


def cohere2_vision(family: Family) -> Iterator[VisionTaskCase]:
    """Tiles with a token at the end of each."""
    tokens = {"image_token": "<part>", "boi_token": "<begin>", "eoi_token": "<end>", "img_line_break_token": "<break>"}
    made, text = added("<part>", tokens)
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids("<part>"))
    image = LeastScaled(size={"height": 16, "width": 16}, max_patches=4, crop_to_patches=True)
    image.patch_size = 2
    processor = Cohere2VisionProcessor(image_processor=image, tokenizer=made, chat_template=made.chat_template)
    yield from asked(family, config, processor, "<part>")


def paligemma(family: Family) -> Iterator[VisionTaskCase]:
    """The prompt stands between the picture and a line's end, and is a prefix."""
    from transformers.models.paligemma import processing_paligemma as module

    # The 1152 tokens of places and outlines, which texts without them leave alone.
    module.EXTRA_TOKENS = []
    made, text = added(TOKEN, {"image_token": TOKEN, "begin": "<bos>"})
    made.bos_token = "<bos>"
    image = SiglipImageProcessorPil(size={"height": 16, "width": 16})
    image.image_seq_length = 16
    processor = PaliGemmaProcessor(image_processor=image, tokenizer=made, chat_template=made.chat_template)
    for name, model in (("", "gemma"), ("-gemma2", "gemma2")):
        config = family.config(
            text=text | {"model_type": model}, image_token_index=made.convert_tokens_to_ids(TOKEN)
        )
        for case in asked(family, config, processor, TOKEN, name):
            # It takes no text without pictures.
            yield VisionTaskCase(**(vars(case) | {"calls": case.calls[:-1]}))


IDEFICS3 = {"image_token": TOKEN, "fake_image_token": "<fake_token_around_image>", "global_image_token": "<global-img>"}


def idefics3(family: Family) -> Iterator[VisionTaskCase]:
    """Rows and columns of squares on lines of their own, and the whole picture."""
    made, text = added(TOKEN, IDEFICS3 | {"end": "<end_of_utterance>", "square": "<row_1_col_1>"})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    image = Idefics3ImageProcessorPil(size={"longest_edge": 37}, max_image_size={"longest_edge": 16})
    processor = Idefics3Processor(
        image_processor=image, tokenizer=made, image_seq_len=4, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, TOKEN)
    image = Idefics3ImageProcessorPil(
        size={"longest_edge": 37}, max_image_size={"longest_edge": 16}, do_image_splitting=False
    )
    processor = Idefics3Processor(
        image_processor=image, tokenizer=made, image_seq_len=4, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, TOKEN, "-whole")


def still(kind: type, image: Any, tokenizer: PreTrainedTokenizerBase, **fields: Any) -> Any:
    """A processor without its part for videos, which cannot be made here, stored as published ones are: a file for pictures, one
    for texts, and one for both."""

    class Still(kind):  # type: ignore[misc, valid-type]
        def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
            return argument if argument is None else super().check_argument_for_proper_class(argument_name, argument)

        def apply_chat_template(self, *args: Any, **kwargs: Any) -> Any:
            return ProcessorMixin.apply_chat_template(self, *args, **kwargs)

        def save_pretrained(self, folder: Path) -> None:
            self.image_processor.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            both = fields | {"processor_class": kind.__name__}
            (folder / "processor_config.json").write_text(json.dumps(both, indent=2) + "\n")

    Still.__name__ = kind.__name__
    template = tokenizer.chat_template
    return Still(image_processor=image, tokenizer=tokenizer, video_processor=None, chat_template=template, **fields)


def smolvlm(family: Family) -> Iterator[VisionTaskCase]:
    """Idefics3's, with tokens that the tokenizer names."""
    from transformers.models.smolvlm import image_processing_pil_smolvlm as pictures
    from transformers.models.smolvlm import processing_smolvlm as module

    # Only the number of a video's frames is written by it.
    module.num2words = str
    made, text = added(TOKEN, IDEFICS3 | {"end_of_utterance_token": "<end_of_utterance>"})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    image = pictures.SmolVLMImageProcessorPil(size={"longest_edge": 32}, max_image_size={"longest_edge": 16})
    processor = still(module.SmolVLMProcessor, image, made, image_seq_len=4)
    yield from asked(family, config, processor, TOKEN)


"""What Qwen3-VL's processor asks of a tokenizer."""
VISION = {"vision_start_token": "<|vision_start|>", "vision_end_token": "<|vision_end|>"}


def qwen2_vl(family: Family) -> Iterator[VisionTaskCase]:
    """Pictures of any size, between two tokens of their own that the text has."""
    from transformers import Qwen2VLImageProcessorPil, Qwen2VLProcessor

    yield from squares_of_patches(family, Qwen2VLProcessor, Qwen2VLImageProcessorPil)


def qwen2_5_vl(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's."""
    from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessorPil

    yield from squares_of_patches(family, Qwen2_5_VLProcessor, Qwen2VLImageProcessorPil)


def qwen3_vl(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's."""
    from transformers import Qwen2VLImageProcessorPil, Qwen3VLProcessor

    yield from squares_of_patches(family, Qwen3VLProcessor, Qwen2VLImageProcessorPil)


def qwen3_vl_moe(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's."""
    yield from qwen3_vl(family)


def qwen3_5(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's."""
    yield from qwen3_vl(family)


def exaone4_5(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's."""
    from transformers import Exaone4_5_Processor, Qwen2VLImageProcessorPil

    yield from squares_of_patches(family, Exaone4_5_Processor, Qwen2VLImageProcessorPil)


def hyperclovax_vision_v2(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's."""
    from transformers import HyperCLOVAXVisionV2Processor, Qwen2VLImageProcessorPil

    yield from squares_of_patches(family, HyperCLOVAXVisionV2Processor, Qwen2VLImageProcessorPil)


def glm4v(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's, but for the sizes of pictures."""
    from transformers import Glm4vImageProcessorPil, Glm4vProcessor

    yield from squares_of_patches(family, Glm4vProcessor, Glm4vImageProcessorPil)


def paddleocr_vl(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's, but for the sizes and the order of patches."""
    from transformers import PaddleOCRVLImageProcessorPil, PaddleOCRVLProcessor

    made, text = added(TOKEN, {"image_token": TOKEN})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    image = PaddleOCRVLImageProcessorPil(patch_size=4, size={"shortest_edge": 250, "longest_edge": 750})
    processor = PaddleOCRVLProcessor(image_processor=image, tokenizer=made, chat_template=made.chat_template)
    yield from asked(family, config, processor, TOKEN)


def glm46v(family: Family) -> Iterator[VisionTaskCase]:
    """As GLM-4.1V's."""
    from transformers import Glm46VImageProcessorPil, Glm46VProcessor

    yield from squares_of_patches(family, Glm46VProcessor, Glm46VImageProcessorPil)


def mistral3(family: Family) -> Iterator[VisionTaskCase]:
    """Pixtral's processor: lines of squares with a token at the end of each."""
    from transformers import PixtralImageProcessorPil

    # It takes one function of a module that needs `torchvision`; that on Pillow has it too.
    module = "transformers.models.pixtral.image_processing_"
    sys.modules.setdefault(f"{module}pixtral", import_module(f"{module}pil_pixtral"))
    kind = import_module("transformers.models.pixtral.processing_pixtral").PixtralProcessor
    tokens = {"image_token": "[IMG]", "break": "[IMG_BREAK]", "end": "[IMG_END]"}
    made, text = added("[IMG]", tokens)
    config = family.config(text=text, image_token_index=made.convert_tokens_to_ids("[IMG]"))
    image = PixtralImageProcessorPil(patch_size=4, size={"longest_edge": 30})
    processor = kind(
        image_processor=image, tokenizer=made, patch_size=4, spatial_merge_size=2, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, "[IMG]")


def lighton_ocr(family: Family) -> Iterator[VisionTaskCase]:
    """Squares of patches without ends of lines."""
    from transformers import LightOnOcrProcessor, PixtralImageProcessorPil

    tokens = {"image_token": TOKEN, "image_break_token": "<break>", "image_end_token": "<end>"}
    made, text = added(TOKEN, tokens)
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    image = PixtralImageProcessorPil(patch_size=8, size={"longest_edge": 30})
    processor = LightOnOcrProcessor(
        image_processor=image, tokenizer=made, patch_size=4, spatial_merge_size=2, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, TOKEN)


def llava_onevision(family: Family) -> Iterator[VisionTaskCase]:
    """Tiles, and fewer features where there are too many."""
    from transformers import LlavaOnevisionImageProcessorPil, LlavaOnevisionProcessor

    made, text = added(TOKEN, {"image_token": TOKEN, "video_token": "<video>"})
    config = family.config(text=text, image_token_index=made.convert_tokens_to_ids(TOKEN))
    image = LlavaOnevisionImageProcessorPil(
        size={"height": 8, "width": 8}, image_grid_pinpoints=config.image_grid_pinpoints
    )
    fields = {"num_image_tokens": 16, "vision_feature_select_strategy": "full", "vision_aspect_ratio": "anyres_max_2"}
    yield from asked(family, config, still(LlavaOnevisionProcessor, image, made, **fields), TOKEN)


def got_ocr2(family: Family) -> Iterator[VisionTaskCase]:
    """As many tokens for a picture as the class says."""
    from transformers import GotOcr2Processor

    made, text = added("<imgpad>", {"image_token": "<imgpad>"})
    config = family.config(
        text=text | {"max_position_embeddings": 700},
        vision={"image_size": 128, "patch_size": 2, "window_size": 8, "global_attn_indexes": []},
        image_token_index=made.convert_tokens_to_ids("<imgpad>"),
    )
    made.model_max_length = 700
    image = GotOcr2ImageProcessorPil(size={"height": 128, "width": 128})
    processor = GotOcr2Processor(image_processor=image, tokenizer=made, chat_template=made.chat_template)
    for case in asked(family, config, processor, "<imgpad>"):
        # It takes neither chats nor texts without pictures.
        yield VisionTaskCase(**(vars(case) | {"calls": case.calls[:-2]}))


def deepseek_vl(family: Family) -> Iterator[VisionTaskCase]:
    """Pictures in the middle of a square."""
    from transformers import DeepseekVLImageProcessorPil, DeepseekVLProcessor

    made, text = added(TOKEN, {"image_token": TOKEN})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    image = DeepseekVLImageProcessorPil(size={"height": 16, "width": 16}, min_size=7)
    processor = DeepseekVLProcessor(
        image_processor=image, tokenizer=made, num_image_tokens=16, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, TOKEN)


def janus(family: Family) -> Iterator[VisionTaskCase]:
    """Pictures in the middle of a square, between two tokens of their own."""
    from transformers import JanusImageProcessorPil, JanusProcessor

    made, text = added(TOKEN, {"image_token": TOKEN, "boi_token": "<begin>", "eoi_token": "<end>"})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    edge = config.vision_config.image_size
    image = JanusImageProcessorPil(size={"height": edge, "width": edge}, min_size=7)
    each = (edge // config.vision_config.patch_size) ** 2
    processor = JanusProcessor(image_processor=image, tokenizer=made, num_image_tokens=each, chat_template=made.chat_template)
    yield from asked(family, config, processor, TOKEN)


def ovis2(family: Family) -> Iterator[VisionTaskCase]:
    """The whole picture and its tiles in rows and columns, each between tokens of their own."""
    from transformers import Ovis2ImageProcessorPil, Ovis2Processor

    marks = {name: f"<IMG_{name}>" for name in ("START", "GRID", "COL", "ROW", "END")}
    made, text = added("<image>", {"image_token": "<image>", "atom": "<IMG_ATOM>"} | marks)
    ids = made.convert_tokens_to_ids
    config = family.config(
        text=text,
        image_token_id=ids("<IMG_ATOM>"),
        visual_indicator_token_ids=[ids(mark) for mark in marks.values()],
        vocab_size=text["vocab_size"],
    )
    edge = config.vision_config.image_size
    image = Ovis2ImageProcessorPil(size={"height": edge, "width": edge}, crop_to_patches=True, max_patches=4)
    each = (edge // config.vision_config.patch_size // config.vision_config.hidden_stride) ** 2
    processor = Ovis2Processor(image_processor=image, tokenizer=made, image_seq_length=each, chat_template=made.chat_template)
    yield from asked(family, config, processor, "<image>")


def qianfan_ocr(family: Family) -> Iterator[VisionTaskCase]:
    """InternVL's, with another token in texts than in front of the model."""
    from transformers import QianfanOCRProcessor

    tokens = {"context_image_token": "<part>", "start_image_token": "<img>", "end_image_token": "</img>"}
    made, text = added(TOKEN, tokens | {"image": TOKEN})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids("<part>"))
    image = GotOcr2ImageProcessorPil(size={"height": 16, "width": 16}, max_patches=4)
    processor = QianfanOCRProcessor(
        image_processor=image, tokenizer=made, image_seq_length=4, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, TOKEN)


def squares_of_patches(family: Family, kind: type, pictures: type) -> Iterator[VisionTaskCase]:
    made, text = added(TOKEN, {"image_token": TOKEN, "video_token": "<video>"} | VISION)
    tokens = {"image_token_id": TOKEN, "video_token_id": "<video>"}
    config = family.config(text=text, **{name: made.convert_tokens_to_ids(token) for name, token in tokens.items()})
    image = pictures(patch_size=4, size={"shortest_edge": 500, "longest_edge": 1500})
    yield from asked(family, config, still(kind, image, made), TOKEN)
