"""Tasks of decoders that read videos as patches of several frames: texts and chats with videos that are continued.

The reference's processors of videos need `torchvision`. Here each is made on Pillow of the reference's own functions,
which are read from its files: how frames are sampled, what size they become, in what order patches stand.
"""

from __future__ import annotations

import ast
import io
import json
import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers
from PIL import Image, ImageSequence
from transformers import PreTrainedModel, Qwen2VLImageProcessorPil
from transformers.image_processing_utils import BatchFeature
from transformers.image_utils import load_image
from transformers.processing_utils import ProcessorMixin, VideosKwargs
from transformers.video_utils import VideoMetadata

from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase, vision_language
from weft_reference.vision_tasks.image_prompts import SHORT
from weft_reference.vision_tasks.llava import TEMPLATE, TOKEN, named
from weft_reference.vision_tasks.vision_language import POSITIONS, VISION
from weft_reference.wordpiece import vocabulary

if TYPE_CHECKING:
    from weft_reference.models.vision_language.family import Family

VIDEO = "<video>"
CHATS = TEMPLATE.replace(
    "{% else %} {{ part.text }} ", "{% elif part.type == 'video' %}<video>{% else %} {{ part.text }} "
)


@lru_cache
def functions(model: str) -> dict[str, Any]:
    """`smart_resize`, and `sample_frames` and `patchify` of the class, as plain functions."""
    path = Path(transformers.__file__).parent / "models" / model / f"video_processing_{model}.py"
    tree = ast.parse(path.read_text())
    kind = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("VideoProcessor"))
    wanted = [
        node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name in ("sample_frames", "patchify")
    ]
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)] + wanted
    logger = SimpleNamespace(warning_once=lambda *_: None)
    names: dict[str, Any] = {"torch": torch, "np": np, "math": math, "VideoMetadata": VideoMetadata, "logger": logger}
    exec(compile("from __future__ import annotations\n" + ast.unparse(tree), model, "exec"), names)  # noqa: S102
    return names


KINDS = {
    "qwen2_vl": "Qwen2VLVideoProcessor",
    "qwen3_vl": "Qwen3VLVideoProcessor",
    "ernie4_5_vl_moe": "Ernie4_5_VLMoeVideoProcessor",
}


class OnPillow:
    """A processor of videos whose frames Pillow resizes; `settings` are what its file says."""

    valid_kwargs = VideosKwargs
    model_input_names = ["pixel_values_videos", "video_grid_thw"]
    min_frames, max_frames, temporal_patch_size, merge_size = 4, 768, 2, 2

    def __init__(self, model: str, settings: dict[str, Any]) -> None:
        self.model, self.settings, self.image = model, settings, Qwen2VLImageProcessorPil(**settings["image"])
        self.num_frames, self.fps = None, settings.get("fps")
        self.patch_size = settings["patch_size"]

    def __call__(self, videos: list[np.ndarray], **kwargs: Any) -> BatchFeature:
        given = functions(self.model)
        pixels, grids, metadata = [], [], []
        for video, of_video in zip(videos, kwargs["video_metadata"], strict=True):
            sampling = {name: kwargs[name] for name in ("num_frames", "fps") if kwargs.get(name) is not None}
            if self.settings["do_sample_frames"] or sampling:
                indices = given["sample_frames"](self, of_video, **sampling)
            else:
                indices = torch.arange(len(video))
            of_video.frames_indices = [int(index) for index in indices]
            patches, *grid = self.patches(self.frames(video[of_video.frames_indices]))
            pixels.append(patches)
            grids.append(grid)
            metadata.append(of_video)
        data = {"pixel_values_videos": torch.cat(pixels), "video_grid_thw": torch.tensor(grids)}
        return BatchFeature(data | ({"video_metadata": metadata} if kwargs.get("return_metadata") else {}))

    def patches(self, frames: torch.Tensor) -> tuple[torch.Tensor, int, int, int]:
        """Patches of frames, and how many times, rows and columns there are."""
        patchify = functions(self.model)["patchify"]
        patches, *grid = patchify(self, frames[None], self.patch_size, self.merge_size, self.temporal_patch_size)
        return patches[0], *grid

    def size(self, video: np.ndarray) -> tuple[int, int]:
        size, factor = self.settings["size"], self.patch_size * self.merge_size
        limits = {"min_pixels": size["shortest_edge"], "max_pixels": size["longest_edge"], "factor": factor}
        if self.model == "qwen3_vl":
            limits |= {"num_frames": len(video), "temporal_factor": self.temporal_patch_size}
        return functions(self.model)["smart_resize"](height=video.shape[1], width=video.shape[2], **limits)

    def frames(self, video: np.ndarray) -> torch.Tensor:
        height, width = self.size(video)
        made = []
        for frame in video:
            resized = np.asarray(Image.fromarray(frame).resize((width, height), Image.Resampling.BICUBIC))
            numbers = self.image.rescale(resized.transpose(2, 0, 1), 1 / 255)
            made.append(self.image.normalize(numbers, self.settings["image_mean"], self.settings["image_std"]))
        return torch.from_numpy(np.stack(made).astype(np.float32))

    def written(self) -> dict[str, Any]:
        """As `save_pretrained` writes it."""
        kind = KINDS[self.model]
        own = {name: value for name, value in self.settings.items() if name != "image"}
        return {
            "video_processor_type": kind,
            "temporal_patch_size": self.temporal_patch_size,
            "merge_size": self.merge_size,
        } | own


def filming(kind: type, image: Any, tokenizer: Any, video: OnPillow) -> Any:
    """A processor with that of videos."""

    class Filming(kind):  # type: ignore[misc, valid-type]
        def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
            own = argument_name == "video_processor"
            return argument if own else super().check_argument_for_proper_class(argument_name, argument)

        def apply_chat_template(self, *args: Any, **kwargs: Any) -> Any:
            return ProcessorMixin.apply_chat_template(self, *args, **kwargs)

        def save_pretrained(self, folder: Path) -> None:
            self.image_processor.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            (folder / "video_preprocessor_config.json").write_text(json.dumps(video.written(), indent=2) + "\n")
            both = {"processor_class": kind.__name__}
            (folder / "processor_config.json").write_text(json.dumps(both, indent=2) + "\n")

    Filming.__name__ = kind.__name__
    return Filming(
        image_processor=image, tokenizer=tokenizer, video_processor=video, chat_template=tokenizer.chat_template
    )


def frames_of(path: str) -> np.ndarray:
    """All frames of an animated image: `[frames, height, width, 3]`."""
    with Image.open(io.BytesIO(Path(path).read_bytes())) as image:
        return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)])


def replies(processor: Any) -> Any:
    """What `AnyToAnyPipeline` does with texts and chats."""

    def answers(_: str, model: PreTrainedModel, __: Path) -> Answer:
        def one(videos: list[str], images: list[str], text: str, parameters: dict[str, Any]) -> str:
            given = {name: parameters.pop(name) for name in ("num_frames", "fps") if name in parameters}
            own_fps = parameters.pop("video_metadata", {}).get("fps")
            options: dict[str, Any] = {}
            if videos:
                shown = [frames_of(path) for path in videos]
                metadata = [VideoMetadata(total_num_frames=len(video), fps=own_fps) for video in shown]
                options = {"videos": shown, "video_metadata": metadata} | given
            if images:
                options["images"] = [load_image(path) for path in images]
            inputs = processor(text=[text], return_tensors="pt", **options)
            inputs = {name: value for name, value in inputs.items() if name != "video_metadata"}
            written = model.generate(**inputs, **parameters)
            whole, begun = (
                processor.batch_decode(ids, skip_special_tokens=True)[0] for ids in (written, inputs["input_ids"])
            )
            at = whole.find(begun)
            return whole[at + len(begun) :] if 0 <= at <= 2 else whole

        def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
            full = parameters.pop("return_full_text", True)
            if isinstance(inputs, list) and "role" in inputs[0]:
                parts = [
                    part for message in inputs for part in message["content"] if isinstance(message["content"], list)
                ]
                videos, images = (
                    [part["path"] for part in parts if part["type"] == kind] for kind in ("video", "image")
                )
                text = processor.tokenizer.apply_chat_template(inputs, tokenize=False, add_generation_prompt=True)
                new = one(videos, images, text, parameters)
                reply = [*inputs, {"role": "assistant", "content": new}] if full else new
                return [{"input_text": inputs, "generated_text": reply}]
            if isinstance(inputs, list):
                return [answer(one, dict(parameters) | {"return_full_text": full}) for one in inputs]
            listed = [inputs.get(name, []) for name in ("videos", "images")]
            videos, images = ([paths] if isinstance(paths, str) else paths for paths in listed)
            new = one(videos, images, inputs["text"], parameters)
            return [{"input_text": inputs["text"], "generated_text": (inputs["text"] if full else "") + new}]

        return answer

    return answers


STATISTICS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.5, 0.4, 0.3]}


def filmed(family: Family, kind: type, model: str, settings: dict[str, Any]) -> Iterator[VisionTaskCase]:
    """Videos as Qwen2-VL's processors take them."""
    image = Qwen2VLImageProcessorPil(patch_size=4, size={"shortest_edge": 300, "longest_edge": 600})
    video = OnPillow(model, {"patch_size": 4, "image": {}} | STATISTICS | settings)
    yield from shown(family, kind, image, video, VISION)


def shown(family: Family, kind: type, image: Any, video: OnPillow, around: dict[str, str]) -> Iterator[VisionTaskCase]:
    """A video, two with an image between them, frames chosen by their number and by seconds, a chat; `around` are the tokens around
    a video, and others that the processor asks of a tokenizer."""
    tokens = {"image_token": TOKEN, "video_token": VIDEO} | around
    made = named(POSITIONS, CHATS, **tokens)
    made.model_input_names = ["input_ids", "attention_mask"]
    text = {"vocab_size": len(vocabulary()) + len(tokens), "max_position_embeddings": POSITIONS}
    ids = {"image_token_id": TOKEN, "video_token_id": VIDEO} | {f"{name}_id": token for name, token in around.items()}
    config = family.config(text=text, **{name: made.convert_tokens_to_ids(token) for name, token in ids.items()})
    processor = filming(kind, image, made, video)
    start, end = [*around.values()][:2]
    question = [{"type": "text", "text": "What moves?"}, {"type": "video", "path": "animated.gif"}]
    both = {"videos": ["animated.gif", "transparent.gif"], "images": "tall.png"}
    yield VisionTaskCase(
        f"{family.model}/tasks/video-text-to-text",
        "video-text-to-text",
        f"{family.prefix}ForConditionalGeneration",
        config,
        processor,
        (
            Call({"videos": "animated.gif", "text": f"user : {start}{VIDEO}{end} What moves? assistant :"}, SHORT),
            Call(both | {"text": f"{VIDEO} and {TOKEN} and {VIDEO} are cloth"}, SHORT),
            Call(
                {"videos": "animated.gif", "text": f"{VIDEO} a loom"},
                SHORT | {"num_frames": 4, "return_full_text": False},
            ),
            Call(
                {"videos": "animated.gif", "text": f"{VIDEO} a loom"},
                SHORT | {"fps": 2, "video_metadata": {"fps": 2.5}},
            ),
            Call([{"role": "user", "content": question}], SHORT | {"return_full_text": False}),
        ),
        "A video, two with an image between them, frames by their number and by seconds, a chat.",
        answers=replies(processor),
    )


def qwen2_vl(family: Family) -> Iterator[VisionTaskCase]:
    """All frames, two of which are one patch together."""
    from transformers import Qwen2VLProcessor

    settings = {"do_sample_frames": False, "size": {"shortest_edge": 300, "longest_edge": 600}}
    yield from vision_language.qwen2_vl(family)
    yield from filmed(family, Qwen2VLProcessor, "qwen2_vl", settings)


def qwen2_5_vl(family: Family) -> Iterator[VisionTaskCase]:
    """As Qwen2-VL's, with positions by seconds."""
    from transformers import Qwen2_5_VLProcessor

    settings = {"do_sample_frames": False, "size": {"shortest_edge": 300, "longest_edge": 600}}
    yield from vision_language.qwen2_5_vl(family)
    yield from filmed(family, Qwen2_5_VLProcessor, "qwen2_vl", settings)


def qwen3_vl(family: Family) -> Iterator[VisionTaskCase]:
    """Each time behind its second, as an image of its own."""
    from transformers import Qwen3VLProcessor

    settings = {"do_sample_frames": True, "fps": 2, "size": {"shortest_edge": 600, "longest_edge": 2400}}
    yield from vision_language.qwen3_vl(family)
    yield from filmed(family, Qwen3VLProcessor, "qwen3_vl", settings)
