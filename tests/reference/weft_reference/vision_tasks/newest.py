"""Tasks of decoders whose images are patches of any size, or states that layers of the text attend to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers
from PIL import Image
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.image_processing_backends import PilBackend
from transformers.image_processing_utils import BatchFeature
from transformers.image_utils import PILImageResampling, SizeDict

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.image_prompts import SHORT, plain
from weft_reference.vision_tasks.llava import TOKEN, answers
from weft_reference.vision_tasks.source_functions import functions
from weft_reference.vision_tasks.vision_language import IDEFICS3, POSITIONS, VISION, added, asked, still
from weft_reference.wordpiece import vocabulary

if TYPE_CHECKING:
    from weft_reference.models.vision_language.family import Family


@dataclass(frozen=True)
class Named:
    """The folder of the goldens, and what the classes' names begin with."""

    model: str
    prefix: str


def lfm3_vl(family: Family) -> Iterator[VisionTaskCase]:
    """Qwen2-VL's images; texts have the tokens around them."""
    from transformers import Lfm3VlProcessor, Qwen2VLImageProcessorPil

    made, text = added(TOKEN, {"image_token": TOKEN, "video_token": "<video>"} | VISION)
    ids = {"image_token_id": TOKEN, "video_token_id": "<video>"}
    config = family.config(text=text, **{name: made.convert_tokens_to_ids(token) for name, token in ids.items()})
    image = Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 500, "longest_edge": 1500})
    yield from asked(family, config, still(Lfm3VlProcessor, image, made), TOKEN)


def cosmos3_edge(family: Family) -> Iterator[VisionTaskCase]:
    """GLM-4.1V's sizes, with all channels of a pixel together; texts have the tokens around images."""
    from transformers import Cosmos3EdgeImageProcessorPil, Cosmos3EdgeProcessor

    made, text = added(TOKEN, {"image_token": TOKEN, "video_token": "<video>"} | VISION)
    ids = {"image_token_id": TOKEN, "video_token_id": "<video>"}
    config = family.config(text=text, **{name: made.convert_tokens_to_ids(token) for name, token in ids.items()})
    image = Cosmos3EdgeImageProcessorPil(patch_size=4, size={"shortest_edge": 500, "longest_edge": 1500})
    processor = still(Cosmos3EdgeProcessor, image, made)
    # What the model asks for, and the processor gives where it is asked itself.
    type(processor).return_mm_token_type_ids = True
    yield from asked(family, config, processor, TOKEN)


def hunyuan_vl(family: Family) -> Iterator[VisionTaskCase]:
    """Rows with a newline behind each, between tokens that the text has."""
    from transformers import HunYuanVLImageProcessorPil, HunYuanVLProcessor

    tokens = {"image_token": TOKEN, "image_start_token": "<begin>", "image_end_token": "<end>"}
    around = f"<begin>{TOKEN}<end>"
    made, text = added(around, tokens)
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    image = HunYuanVLImageProcessorPil(patch_size=4, size={"shortest_edge": 500, "longest_edge": 1500})
    processor = HunYuanVLProcessor(image_processor=image, tokenizer=made, chat_template=made.chat_template)
    yield from asked(family, config, processor, around)


def granite_docling(family: Family) -> Iterator[VisionTaskCase]:
    """Rows and columns of tiles on lines of their own, and the whole page behind several."""
    from transformers import GraniteDoclingImageProcessorPil, GraniteDoclingProcessor

    made, text = added(TOKEN, IDEFICS3 | {"tile": "<row_1_col_1>", "second": "<row_2_col_1>"})
    config = family.config(text=text, image_token_id=made.convert_tokens_to_ids(TOKEN))
    dense = {"max_patches": 2, "dense_max_patches": 6, "dense_max_scale": 0.9}
    for name, settings in (("", {"max_patches": 4}), ("-dense", dense), ("-whole", {"crop_to_patches": False})):
        image = GraniteDoclingImageProcessorPil(size={"height": 16, "width": 16}, **settings)
        processor = GraniteDoclingProcessor(
            image_processor=image, tokenizer=made, image_seq_len=4, chat_template=made.chat_template
        )
        yield from asked(family, config, processor, TOKEN, name)


class MuseGlimmerImageProcessorPil(PilBackend):
    """Muse Glimmer's on Pillow: the reference's own choice of a size, and its order of values."""

    resample = PILImageResampling.LANCZOS
    image_mean = [0.5, 0.5, 0.5]
    image_std = [0.5, 0.5, 0.5]
    size = None
    do_resize = do_rescale = do_normalize = do_convert_rgb = True
    rescale_factor = 1 / 255
    patch_size, temporal_patch_size, merge_size, max_image_tokens = 14, 2, 2, 4096

    def _validate_preprocess_kwargs(self, **kwargs: Any) -> None:
        super()._validate_preprocess_kwargs(**kwargs | {"do_resize": False})

    def _preprocess(self, images: list[np.ndarray], resample: Any, return_tensors: Any, **_: Any) -> BatchFeature:
        edge, patches, grids = self.patch_size, [], []
        for image in images:
            choose = functions("muse_glimmer", itertools=itertools, math=math)["smart_resize"]
            height, width = choose(*image.shape[-2:], edge * self.merge_size, self.max_image_tokens)
            resized = self.resize(image, SizeDict(height=height, width=width), resample)
            numbers = self.normalize(self.rescale(resized, self.rescale_factor), self.image_mean, self.image_std)
            rows, columns = height // edge, width // edge
            cut = numbers.reshape(3, rows, edge, columns, edge).transpose(1, 3, 0, 2, 4).reshape(rows * columns, -1)
            patches.append(np.concatenate([cut] * self.temporal_patch_size, axis=1))
            grids.append([1, rows, columns])
        data = {"pixel_values": np.concatenate(patches), "image_grid_thw": np.array(grids)}
        return BatchFeature(data, tensor_type=return_tensors)


MuseGlimmerImageProcessorPil.__name__ = "MuseGlimmerImageProcessor"


def muse_glimmer(family: Family) -> Iterator[VisionTaskCase]:
    """Grids of squares nearest to an image's form, between two tokens of their own."""
    from transformers import MuseGlimmerProcessor

    tokens = {"image_token": "<|patch|>", "begin": "<|image_start|>", "end": "<|image_end|>", "video_token": "<|video|>"}
    made, text = added("<|patch|>", tokens)
    ids = {"image_token_id": "<|patch|>", "video_token_id": "<|video|>"}
    config = family.config(text=text, **{name: made.convert_tokens_to_ids(token) for name, token in ids.items()})
    image = MuseGlimmerImageProcessorPil(patch_size=4, max_image_tokens=14)
    yield from asked(family, config, still(MuseGlimmerProcessor, image, made), "<|patch|>")


def gemma4(config: Any) -> Iterator[VisionTaskCase]:
    """As many patches for every image, of which squares become tokens between two others."""
    from transformers import Gemma4ImageProcessorPil, Gemma4Processor

    tokens = {"image_token": TOKEN, "boi_token": "<begin>", "eoi_token": "<end>"}
    tokens |= {"audio_token": "<audio>", "boa_token": "<begin_audio>", "eoa_token": "<end_audio>"}
    made, text = added(TOKEN, tokens | {"video": "<|video|>"})
    ids = made.convert_tokens_to_ids
    together = {
        "use_bidirectional_attention": "vision",
        "sliding_window": 40,
        "vocab_size_per_layer_input": text["vocab_size"],
    }
    for name, more in (("", {}), ("-vision", together)):
        own = text | {"vocab_size_per_layer_input": text["vocab_size"]} | more
        chosen = config(
            "gemma4",
            text=own,
            vision={"position_embedding_size": 80},
            image_token_id=ids(TOKEN),
            audio_token_id=ids("<audio>"),
        )
        vision = chosen.vision_config
        image = Gemma4ImageProcessorPil(
            patch_size=vision.patch_size, pooling_kernel_size=vision.pooling_kernel_size, max_soft_tokens=70
        )
        processor = still(Gemma4Processor, image, made, feature_extractor=None, image_seq_length=70)
        yield from asked(Named("gemma4", "Gemma4"), chosen, processor, TOKEN, name)  # type: ignore[arg-type]


def mllama(config: Any) -> Iterator[VisionTaskCase]:
    """Tiles by the image's form; tokens see the images before them. The image token is behind the vocabulary."""
    from transformers import MllamaImageProcessorPil, MllamaProcessor

    # Of the rows behind the vocabulary the image token has one, and the tokenizer names the other seven too.
    spare = {f"spare_{index}": f"<spare_{index}>" for index in range(7)}
    made, _ = added(TOKEN, {"begin": "<bos>", "image_token": TOKEN} | spare)
    made.bos_token = "<bos>"
    text = {"vocab_size": len(vocabulary()) + 1, "max_position_embeddings": POSITIONS}
    for name, most, ratios in (("", 2, [[1, 1], [1, 2], [2, 1]]), ("-four", 4, None)):
        tower = {"image_size": 12, "max_num_tiles": most, "supported_aspect_ratios": ratios}
        chosen = config(text, tower, image_token_index=made.convert_tokens_to_ids(TOKEN))
        image = MllamaImageProcessorPil(size={"height": 12, "width": 12}, max_image_tiles=most)
        processor = MllamaProcessor(image_processor=image, tokenizer=made, chat_template=made.chat_template)
        for case in asked(Named("mllama", "Mllama"), chosen, processor, TOKEN, name):  # type: ignore[arg-type]
            beams = {"generate_kwargs": {"num_beams": 2, "max_new_tokens": 3}, "return_full_text": False}
            more = (
                Call({"images": ["tall.png", "wide.png"], "text": f"{TOKEN}{TOKEN}and cloth"}, SHORT),
                Call({"images": "wide.png", "text": f"<bos>a loom {TOKEN}"}, beams),
            )
            yield VisionTaskCase(**(vars(case) | {"calls": (*case.calls, *more)}))


def interleaved(task: str, model: PreTrainedModel, folder: Path, processor: Any) -> Answer:
    """The reference's pipeline for an image before a text; for texts with images in the places of `<image>`, its processor,
    which takes lists of both."""
    whole = answers(task, model, folder, processor)

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        if isinstance(inputs, dict) and TOKEN not in inputs["text"]:
            return whole(inputs, parameters)
        inputs = {"images": [], "text": inputs} if isinstance(inputs, str) else inputs
        images = iter(inputs["images"])
        first, *parts = inputs["text"].split(TOKEN)
        prompt: list[Any] = [first] if first else []
        for part in parts:
            prompt.append(Image.open(next(images)).convert("RGB"))
            prompt += [part] if part else []
        with torch.no_grad():
            given = processor(text=prompt)
            ids = model.generate(**given, max_new_tokens=parameters["max_new_tokens"])
        known, made = (
            processor.tokenizer.decode(row, skip_special_tokens=True) for row in (given["input_ids"][0], ids[0])
        )
        text = inputs["text"]
        return [{"input_text": text, "generated_text": text + made.removeprefix(known)}]

    return answer


def idefics(config: Any) -> Iterator[VisionTaskCase]:
    """An image before a text, or images in the places of their tokens; tokens see the last image before them."""
    from transformers import IdeficsImageProcessorPil, IdeficsProcessor

    made = plain("<fake_token_around_image>", TOKEN, "<bos>", "<eos>")
    made.bos_token, made.eos_token = "<bos>", "<eos>"
    known = len(vocabulary())
    more = {"vocab_size": known, "additional_vocab_size": 4, "max_position_embeddings": POSITIONS}
    for name, changes in (("", {}), ("-perceiver", {"use_resampler": True})):
        chosen: PreTrainedConfig = config(**more, **changes)
        processor = IdeficsProcessor(IdeficsImageProcessorPil(image_size=12), made)
        yield VisionTaskCase(
            f"idefics/tasks/image-text-to-text{name}",
            "image-text-to-text",
            "IdeficsForVisionText2Text",
            chosen,
            processor,
            (
                Call({"images": "rgb.png", "text": "What is this?"}, SHORT),
                Call({"images": ["tall.png", "wide.png"], "text": f"{TOKEN} and {TOKEN} are cloth"}, SHORT),
                Call({"images": ["tall.png", "wide.png"], "text": f"the weaver and {TOKEN}{TOKEN}the shuttle"}, SHORT),
                Call({"images": "wide.png", "text": " a loom is "}, SHORT | {"return_full_text": False}),
                Call("the shuttle carries the weft", SHORT),
            ),
            "An image before a text, two within one, two side by side, a text without images.",
            answers=partial(interleaved, processor=processor),
        )


def thinker(family: Any, kind: str) -> Iterator[VisionTaskCase]:
    """Qwen2-VL's images beside recordings, which are not given here; positions are along rows and columns where a token stands
    before an image."""
    from transformers import Qwen2VLImageProcessorPil

    tokens = {"image_token": TOKEN, "audio_token": "<audio>", "video_token": "<video>"}
    tokens |= {"vision_bos_token": "<|vision_start|>", "vision_eos_token": "<|vision_end|>"}
    tokens |= {"audio_bos_token": "<|audio_start|>", "audio_eos_token": "<|audio_end|>"}
    for name, around in (("", f"<|vision_start|>{TOKEN}<|vision_end|>"), ("-unmarked", TOKEN)):
        made, text = added(around, tokens)
        ids = made.convert_tokens_to_ids
        ending = "index" if "image_token_index" in family.changes else "id"
        config = family.config(
            text=text,
            **{
                f"image_token_{ending}": ids(TOKEN),
                f"audio_token_{ending}": ids("<audio>"),
                f"video_token_{ending}": ids("<video>"),
            },
            vision_start_token_id=ids("<|vision_start|>"),
            audio_start_token_id=ids("<|audio_start|>"),
            audio_end_token_id=ids("<|audio_end|>"),
        )
        image = Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 500, "longest_edge": 1500})
        processor = still(getattr(transformers, kind), image, made, feature_extractor=None)
        yield from asked(family, config, processor, around, name)
