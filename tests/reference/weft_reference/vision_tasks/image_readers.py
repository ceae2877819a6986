"""Tasks of models that read an image before a text, as tokens of their own, or alone: KOSMOS-2, Florence-2, Chameleon,
Emu3, Fuyu, GIT, Pix2Struct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.image_utils import load_image

from weft_reference.pieces import pieces
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.image_prompts import SHORT, alone
from weft_reference.vision_tasks.image_questions import CLS, PAD, SEP, generating, image_to_text, tokenizer
from weft_reference.vision_tasks.llava import TEMPLATE, TOKEN, answers, named
from weft_reference.vision_tasks.vision_language import POSITIONS

Config = Callable[..., PreTrainedConfig]
SPECIAL = {"bos_token_id": CLS, "eos_token_id": SEP, "pad_token_id": PAD}


def kosmos_2(config: Config) -> Iterator[VisionTaskCase]:
    """The image stands behind the token that begins texts, in 64 places whose tokens count on from the unknown one."""
    from transformers import CLIPImageProcessorPil, Kosmos2Processor

    made = tokenizer(POSITIONS)
    made.bos_token = "[CLS]"
    made.model_input_names = ["input_ids", "attention_mask"]
    image = CLIPImageProcessorPil(size={"shortest_edge": 12}, crop_size={"height": 12, "width": 12})
    processor = Kosmos2Processor(image, made, 4)
    tiny = config(text={"vocab_size": len(made)} | SPECIAL, latent_query_num=64)
    yield alone("kosmos-2", "Kosmos2ForConditionalGeneration", tiny, processor)


def florence2(config: Config) -> Iterator[VisionTaskCase]:
    """A text, or a task that stands for one, behind the image; what is written is the decoder's."""
    from transformers import CLIPImageProcessorPil, Florence2Processor

    made = named(POSITIONS, TEMPLATE, image_token=TOKEN)
    made.bos_token, made.eos_token = "[CLS]", "[SEP]"
    made.model_input_names = ["input_ids", "attention_mask"]
    image = CLIPImageProcessorPil(size={"height": 16, "width": 16}, do_center_crop=False)
    image.image_seq_length = 17
    text = {"vocab_size": len(made), "max_position_embeddings": POSITIONS, "decoder_start_token_id": CLS}
    tiny = config(text=text | SPECIAL | {"forced_eos_token_id": None})
    tiny.image_token_id = made.convert_tokens_to_ids(TOKEN)
    processor = Florence2Processor(image_processor=image, tokenizer=made)
    case = alone("florence2", "Florence2ForConditionalGeneration", tiny, processor)
    tasks = [
        {"images": "rgb.png", "text": "<CAPTION>"},
        {"images": "tall.png", "text": "<OPEN_VOCABULARY_DETECTION> a loom"},
    ]
    notes = "One image before each text, several inputs, beams; names of tasks."
    yield VisionTaskCase(**(vars(case) | {"calls": (*case.calls, Call(tasks, SHORT)), "notes": notes}))


def chameleon(config: Config, codes: Callable[[int], dict[str, int]], count: int) -> Iterator[VisionTaskCase]:
    """Tokens of images between two of their own, and one that ends the prompt."""
    from transformers import ChameleonImageProcessorPil, ChameleonProcessor

    made = named(POSITIONS, TEMPLATE, image_token=TOKEN, boi_token="<racm3:break>", eoi_token="<eoss>")
    made.model_input_names = ["input_ids", "attention_mask"]
    names = [name for name in codes(count) if name.startswith("IMGIMG")]
    made.add_tokens(names)
    tokens = {name: made.convert_tokens_to_ids(name) for name in (*names, TOKEN)} | {"<pad>": PAD}
    tiny = config(vocab_size=len(made), vocabulary_map=tokens, max_position_embeddings=POSITIONS, **SPECIAL)
    image = ChameleonImageProcessorPil(size={"shortest_edge": 8}, crop_size={"height": 8, "width": 8})
    processor = ChameleonProcessor(image_processor=image, tokenizer=made, image_seq_length=16)
    yield VisionTaskCase(
        "chameleon/tasks/image-text-to-text",
        "image-text-to-text",
        "ChameleonForConditionalGeneration",
        tiny,
        processor,
        (
            Call({"images": "rgb.png", "text": f"{TOKEN} What is this?"}, SHORT),
            Call({"images": ["tall.png", "wide.png"], "text": f"{TOKEN} and {TOKEN} are cloth"}, SHORT),
            Call("the shuttle carries the weft", SHORT),
        ),
        "One image, two in a text, a text without images.",
        answers=partial(answers, processor=processor),
    )


def emu3(config: Config, codes: Callable[[int], dict[str, int]], count: int) -> Iterator[VisionTaskCase]:
    """Rows and columns of codes behind their numbers, and a token that begins texts; codes are squares of eight pixels."""
    from transformers import Emu3ImageProcessor, Emu3Processor

    around = {"boi_token": "<|image start|>", "eoi_token": "<|image end|>", "image_wrapper_token": "<|image token|>"}
    made = named(POSITIONS, TEMPLATE, image_token=TOKEN, eof_token="<|extra_201|>", begin="<bos>", **around)
    made.bos_token = "<bos>"
    made.model_input_names = ["input_ids", "attention_mask"]
    names = [name for name in codes(count) if name != TOKEN]
    made.add_tokens(names)
    tokens = {name: made.convert_tokens_to_ids(name) for name in (*names, TOKEN)}
    text = {"vocab_size": len(made), "max_position_embeddings": POSITIONS} | SPECIAL
    vision = {"channel_multiplier": [1, 1, 1, 1], "hidden_size": 32, "attn_resolutions": [3]}
    tiny = config(vision=vision, text=text, vocabulary_map=tokens)
    image = Emu3ImageProcessor(min_pixels=400, max_pixels=800)
    processor = Emu3Processor(image_processor=image, tokenizer=made, chat_template=TEMPLATE)
    question = [{"type": "text", "text": "What is it?"}, {"type": "image", "path": "tall.png"}]
    yield VisionTaskCase(
        "emu3/tasks/image-text-to-text",
        "image-text-to-text",
        "Emu3ForConditionalGeneration",
        tiny,
        processor,
        (
            Call({"images": "rgb.png", "text": f"{TOKEN} What is this?"}, SHORT),
            Call({"images": ["tall.png", "wide.png"], "text": f"{TOKEN} and {TOKEN} are cloth"}, SHORT),
            Call([{"role": "user", "content": question}], SHORT | {"return_full_text": False}),
            Call("the shuttle carries the weft", SHORT),
        ),
        "One image, two of two sizes in a text, a chat, a text without images.",
        answers=partial(answers, processor=processor),
    )


def spaced() -> Any:
    """A tokenizer that puts a space before each text, be it of image tokens alone; those are pieces like any other."""
    own = [("|SPEAKER|", 0.0), ("|NEWLINE|", 0.0), ("<0x04>", 0.0)]
    made = Tokenizer(models.Unigram([*pieces(), *own], unk_id=2))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    kind = transformers.PreTrainedTokenizerFast
    names = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "bos_token": "<s>"}
    return kind(
        tokenizer_object=made, model_max_length=POSITIONS, model_input_names=["input_ids", "attention_mask"], **names
    )


def fuyu(config: Config) -> Iterator[VisionTaskCase]:
    """Rows of patches with a token at the end of each, before the text and the token that begins answers."""
    from transformers import FuyuImageProcessorPil, FuyuProcessor

    class Today(FuyuProcessor):
        """What `generate` takes; by default the processor gives `image_patches`, which the model leaves alone."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(*args, **kwargs, return_legacy_image_output=False)

    class Patches(FuyuImageProcessorPil):
        """The processor gives tensors to what takes arrays alone."""

        def patchify_image(self, image: Any, patch_size: Any = None) -> Any:
            return torch.from_numpy(super().patchify_image(np.asarray(image), patch_size))

    Today.__name__, Patches.__name__ = "FuyuProcessor", "FuyuImageProcessorPil"
    made = spaced()
    text = {"vocab_size": len(made), "max_position_embeddings": POSITIONS, "bos_token_id": None, "eos_token_id": 1}
    tiny = config(text=text)
    tiny.patch_size, tiny.image_token_id = 8, made.convert_tokens_to_ids("|SPEAKER|")
    image = Patches(size={"height": 32, "width": 48}, patch_size={"height": 8, "width": 8})
    case = alone(
        "fuyu", "FuyuForCausalLM", tiny, Today(image, made), note="One image before each text, several inputs."
    )
    # With beams, the reference has the patches of one image for all.
    more = Call({"images": "wide.png", "text": "the cloth is"}, SHORT | {"return_full_text": False})
    yield VisionTaskCase(**(vars(case) | {"calls": (*case.calls[:-1], more)}))


def git_captions(_: str, model: PreTrainedModel, folder: Path) -> Answer:
    """What `ImageToTextPipeline` does in release 4.57 with GIT: a prompt follows the token that begins texts."""
    image = transformers.AutoImageProcessor.from_pretrained(folder)
    made = transformers.AutoTokenizer.from_pretrained(folder)

    def one(picture: str, parameters: dict[str, Any]) -> list[dict[str, str]]:
        prompt, ids = parameters.pop("prompt", None), None
        if prompt is not None:
            ids = torch.tensor([[made.cls_token_id, *made(prompt, add_special_tokens=False).input_ids]])
        pixels = image(images=load_image(picture), return_tensors="pt").pixel_values
        written = model.generate(pixel_values=pixels, input_ids=ids, **generating(parameters))
        return [{"generated_text": made.decode(ids, skip_special_tokens=True)} for ids in written]

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        return (
            one(inputs, parameters)
            if isinstance(inputs, str)
            else [one(picture, dict(parameters)) for picture in inputs]
        )

    return answer


def git(config: Config) -> Iterator[VisionTaskCase]:
    """Captions, and texts that prompts begin."""
    from transformers import CLIPImageProcessorPil

    made = tokenizer(POSITIONS)
    tiny = config(vocab_size=len(made), max_position_embeddings=POSITIONS, **SPECIAL)
    image = CLIPImageProcessorPil(size={"shortest_edge": 12}, crop_size={"height": 12, "width": 12})
    case = image_to_text("git", "GitForCausalLM", tiny, image, made, prompted=True)
    yield VisionTaskCase(**(vars(case) | {"answers": git_captions}))


def pix2struct(config: Config) -> Iterator[VisionTaskCase]:
    """What can be read of an image, in as many patches as it has."""
    from transformers import Pix2StructImageProcessorPil

    made = tokenizer(POSITIONS)
    tiny = config(text={"vocab_size": len(made)}, vision={"patch_embed_hidden_size": 48, "seq_len": 20})
    image = Pix2StructImageProcessorPil(patch_size={"height": 4, "width": 4}, max_patches=15)
    generation = {"decoder_start_token_id": PAD, "eos_token_id": SEP, "pad_token_id": PAD}
    yield image_to_text("pix2struct", "Pix2StructForConditionalGeneration", tiny, image, made, False, generation)
