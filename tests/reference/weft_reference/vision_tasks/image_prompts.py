"""Tasks of decoders whose processors cut images, put them before the text, or read it with them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase
from transformers.image_processing_backends import PilBackend
from transformers.image_processing_utils import BatchFeature
from transformers.image_utils import PILImageResampling, SizeDict

from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import TOKEN, answers
from weft_reference.vision_tasks.source_functions import functions
from weft_reference.vision_tasks.vision_language import POSITIONS, added, asked, still
from weft_reference.wordpiece import bert_tokenizer, vocabulary

if TYPE_CHECKING:
    from weft_reference.models.vision_language.family import Family

SHORT: dict[str, Any] = {"max_new_tokens": 6}


def alone(path: str, model_class: str, config: Any, processor: Any, name: str = "", note: str = "") -> VisionTaskCase:
    """One image before each text, several inputs, beams."""
    beams = {"generate_kwargs": {"num_beams": 2, "max_new_tokens": 3}, "return_full_text": False}
    return VisionTaskCase(
        f"{path}/tasks/image-text-to-text{name}",
        "image-text-to-text",
        model_class,
        config,
        processor,
        (
            Call({"images": "rgb.png", "text": "What is this?"}, SHORT),
            Call([{"images": "tall.png", "text": "a loom"}, {"images": "wide.png", "text": "the weaver and"}], SHORT),
            Call({"images": "wide.png", "text": "the cloth is"}, beams),
        ),
        note or "One image before each text, several inputs, beams.",
        answers=partial(answers, processor=processor),
    )


def aria(family: Family) -> Iterator[VisionTaskCase]:
    """The longer edge becomes 980 pixels, whatever the image processor says."""
    from transformers import AriaImageProcessorPil, AriaProcessor

    made, text = added(TOKEN, {"image_token": TOKEN})
    config = family.config(
        text=text,
        vision={"image_size": 980, "patch_size": 140},
        image_token_index=made.convert_tokens_to_ids(TOKEN),
        projector_patch_to_query_dict={49: 5},
    )
    image = AriaImageProcessorPil(max_image_size=490, min_image_size=300)
    processor = AriaProcessor(
        image_processor=image, tokenizer=made, size_conversion={490: 3, 980: 5}, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, TOKEN)


def llava_next_video(family: Family) -> Iterator[VisionTaskCase]:
    """Of images and videos the images: tiles as LLaVA-NeXT's."""
    from transformers import LlavaNextImageProcessorPil, LlavaNextVideoProcessor

    made, text = added(TOKEN, {"image_token": TOKEN, "video_token": "<video>"})
    config = family.config(text=text, image_token_index=made.convert_tokens_to_ids(TOKEN))
    vision = config.vision_config
    sizes = {
        "size": {"shortest_edge": vision.image_size},
        "crop_size": {"height": vision.image_size, "width": vision.image_size},
    }
    image = LlavaNextImageProcessorPil(**sizes, image_grid_pinpoints=config.image_grid_pinpoints)
    fields = {
        "patch_size": vision.patch_size,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    }
    yield from asked(family, config, still(LlavaNextVideoProcessor, image, made, **fields), TOKEN)


def granite4_vision(family: Family) -> Iterator[VisionTaskCase]:
    """Tiles as LLaVA-NeXT's, each of fewer features than it has patches."""
    from transformers import Granite4VisionProcessor, LlavaNextImageProcessorPil

    made, text = added(TOKEN, {"image_token": TOKEN})
    config = family.config(text=text | {"max_position_embeddings": 2000}, image_token_index=made.convert_tokens_to_ids(TOKEN))
    made.model_max_length = 2000
    vision = config.vision_config
    sizes = {
        "size": {"shortest_edge": vision.image_size},
        "crop_size": {"height": vision.image_size, "width": vision.image_size},
    }
    image = LlavaNextImageProcessorPil(**sizes, image_grid_pinpoints=config.image_grid_pinpoints)
    processor = Granite4VisionProcessor(
        image_processor=image,
        tokenizer=made,
        patch_size=vision.patch_size,
        vision_feature_select_strategy="full",
        chat_template=made.chat_template,
        downsample_rate=config.downsample_rate,
    )
    yield from asked(family, config, processor, TOKEN)


def idefics2(family: Family) -> Iterator[VisionTaskCase]:
    """Neighbours share the token between them; images whole, and in quarters."""
    from transformers import Idefics2ImageProcessorPil, Idefics2Processor

    for name, splits in (("", False), ("-quarters", True)):
        tokens = {
            "image_token": TOKEN,
            "image_boundary_token": "<fake_token_around_image>",
            "end": "<end_of_utterance>",
        }
        made, text = added(TOKEN, tokens)
        config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
        size = {"shortest_edge": 9, "longest_edge": 19}
        image = Idefics2ImageProcessorPil(size=size, do_image_splitting=splits)
        count = config.perceiver_config.resampler_n_latents
        processor = Idefics2Processor(
            image_processor=image, tokenizer=made, image_seq_len=count, chat_template=made.chat_template
        )
        for case in asked(family, config, processor, TOKEN, name):
            beside = Call({"images": ["tall.png", "wide.png"], "text": f"{TOKEN}{TOKEN}and cloth"}, SHORT)
            yield VisionTaskCase(**(vars(case) | {"calls": (*case.calls, beside)}))


def deepseek_vl_hybrid(family: Family) -> Iterator[VisionTaskCase]:
    """Images in the middle of squares of two sizes."""
    from transformers import DeepseekVLHybridImageProcessorPil, DeepseekVLHybridProcessor

    made, text = added(TOKEN, {"image_token": TOKEN})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    low, high = config.vision_config.image_size, config.high_res_vision_config.image_size
    image = DeepseekVLHybridImageProcessorPil(
        size={"height": low, "width": low},
        high_res_size={"height": high, "width": high},
        min_size=7,
        high_res_image_mean=[0.4, 0.5, 0.6],
        high_res_resample=2,
    )
    each = (low // config.vision_config.patch_size) ** 2
    processor = DeepseekVLHybridProcessor(
        image_processor=image, tokenizer=made, num_image_tokens=each, chat_template=made.chat_template
    )
    yield from asked(family, config, processor, TOKEN)


def llama4_functions() -> dict[str, Any]:
    """What Llama 4's image processor chooses a canvas by."""
    names = {"torch": torch, "math": math, "defaultdict": defaultdict, "lru_cache": lru_cache, "SizeDict": SizeDict}
    return functions("llama4", **names)


class Llama4ImageProcessorPil(PilBackend):
    """Llama 4's on Pillow: the reference's own choice of a canvas, and its numbers in bfloat16."""

    resample = PILImageResampling.BILINEAR
    image_mean = [0.5, 0.5, 0.5]
    image_std = [0.5, 0.5, 0.5]
    size = {"height": 336, "width": 336}
    do_resize = do_rescale = do_normalize = do_convert_rgb = True
    max_patches = 16
    resize_to_max_canvas = False

    def numbers(self, image: np.ndarray) -> torch.Tensor:
        made = torch.from_numpy(np.ascontiguousarray(image)).to(torch.bfloat16) * self.rescale_factor
        mean, std = (
            torch.tensor(list(values), dtype=torch.bfloat16)[:, None, None]
            for values in (self.image_mean, self.image_std)
        )
        return made.sub(mean).div(std)

    def _preprocess(
        self, images: list[np.ndarray], size: SizeDict, resample: Any, return_tensors: Any, **_: Any
    ) -> BatchFeature:
        chosen, tiles, ratios = llama4_functions(), [], []
        canvases = torch.tensor(chosen["find_supported_resolutions"](max_num_chunks=self.max_patches, patch_size=size))
        for image in images:
            before = image.shape[-2:]
            target = chosen["get_best_fit"](before, canvases, resize_to_max_canvas=self.resize_to_max_canvas).tolist()
            most = (
                target if self.resize_to_max_canvas else [min(max(b, size.height), t) for b, t in zip(before, target)]
            )
            height, width = chosen["get_max_res_without_distortion"](before, most)
            fitted = self.resize(image, SizeDict(height=max(height, 1), width=max(width, 1)), resample)
            padding = ((0, 0), (0, target[0] - fitted.shape[1]), (0, target[1] - fitted.shape[2]))
            numbers = self.numbers(np.pad(fitted, padding))
            rows, columns = target[0] // size.height, target[1] // size.width
            parts = numbers.reshape(3, rows, size.height, columns, size.width).permute(1, 3, 0, 2, 4)
            tiles.append(parts.reshape(rows * columns, 3, size.height, size.width))
            if rows * columns > 1:
                tiles.append(self.numbers(self.resize(image, size, resample))[None])
            ratios.append([rows, columns])
        data = {"pixel_values": torch.cat(tiles), "aspect_ratios": torch.tensor(ratios)}
        return BatchFeature(data, tensor_type=return_tensors)


Llama4ImageProcessorPil.__name__ = "Llama4ImageProcessor"


def llama4(family: Family) -> Iterator[VisionTaskCase]:
    """Tiles of a canvas between separators, and the whole image."""
    from transformers.models.llama4.processing_llama4 import Llama4Processor

    marks = {"begin": "<|image_start|>", "end": "<|image_end|>", "patch": "<|patch|>"}
    marks |= {name: f"<|tile_{name}_separator|>" for name in ("x", "y")}
    made, text = added("<|image|>", {"image_token": "<|image|>"} | marks)
    config = family.config(
        text=text | {"attention_chunk_size": 24, "floor_scale": 16},
        image_token_index=made.convert_tokens_to_ids("<|patch|>"),
        boi_token_index=made.convert_tokens_to_ids("<|image_start|>"),
        eoi_token_index=made.convert_tokens_to_ids("<|image_end|>"),
    )
    vision = config.vision_config
    for name, settings in (("", {}), ("-largest", {"resize_to_max_canvas": True})):
        size = {"height": vision.image_size, "width": vision.image_size}
        image = Llama4ImageProcessorPil(size=size, max_patches=4, **settings)
        processor = Llama4Processor(
            image_processor=image,
            tokenizer=made,
            patch_size=vision.patch_size,
            pixel_shuffle_ratio=vision.pixel_shuffle_ratio,
            chat_template=made.chat_template,
        )
        yield from asked(family, config, processor, "<|image|>", name)


def plain(*tokens: str) -> PreTrainedTokenizerBase:
    """The small tokenizer with these tokens at its end."""
    made = bert_tokenizer(POSITIONS)
    made.model_input_names = ["input_ids", "attention_mask"]
    made.add_tokens(list(tokens), special_tokens=True)
    return made


def blip_2(family: Family) -> Iterator[VisionTaskCase]:
    """Queries before the text and the tokens that begin it."""
    from transformers import Blip2Processor, BlipImageProcessorPil

    made = plain(TOKEN)
    config = family.config(
        text={
            "vocab_size": len(made),
            "max_position_embeddings": POSITIONS,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "pad_token_id": 0,
        },
        image_token_index=made.convert_tokens_to_ids(TOKEN),
    )
    edge = config.vision_config.image_size
    image = BlipImageProcessorPil(size={"height": edge, "width": edge})
    processor = Blip2Processor(image_processor=image, tokenizer=made, num_query_tokens=config.num_query_tokens)
    yield alone(family.model, "Blip2ForConditionalGeneration", config, processor)


def instructblip(family: Family) -> Iterator[VisionTaskCase]:
    """The Q-Former reads the text too, by a tokenizer of its own."""
    from transformers import BlipImageProcessorPil, InstructBlipProcessor

    made, instruction = plain(TOKEN), bert_tokenizer(POSITIONS)
    config = family.config(
        text={
            "vocab_size": len(made),
            "max_position_embeddings": POSITIONS,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "pad_token_id": 0,
        },
        image_token_index=made.convert_tokens_to_ids(TOKEN),
        qformer_config=family.changes["qformer_config"]
        | {"vocab_size": len(vocabulary()), "max_position_embeddings": POSITIONS},
    )
    edge = config.vision_config.image_size
    image = BlipImageProcessorPil(size={"height": edge, "width": edge})
    processor = InstructBlipProcessor(
        image_processor=image, tokenizer=made, qformer_tokenizer=instruction, num_query_tokens=config.num_query_tokens
    )
    yield alone(family.model, "InstructBlipForConditionalGeneration", config, processor)
