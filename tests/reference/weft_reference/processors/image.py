"""Goldens of `weft::image`: what the reference reads from picture files, resizes them to, and makes of them.

`files/` are the pictures; `decoded.safetensors` has what `load_image` gives for each, uint8 `[height, width, 3]`;
`frames.safetensors` the frames of the animated ones; `resized.safetensors` has `<filter>.<height>x<width>` of one
picture; `defaults.json` each class's settings where its file says nothing. A folder for each case has
`preprocessor_config.json` (or `processor_config.json`), `case.json` with the pictures that went in, and
`out.safetensors`. Classes are those of the PIL backend.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from PIL import Image, ImageSequence
from transformers.image_utils import load_image

from weft_reference.files import Files, to_json, to_safetensors
from weft_reference.processors import pictures

FOLDER = "processors/image"
CLASSES = (
    "ViTImageProcessor",
    "CLIPImageProcessor",
    "DetrImageProcessor",
    "LlavaImageProcessor",
    "LlavaNextImageProcessor",
    "VideoMAEImageProcessor",
)
FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
SIZES = ((17, 23), (11, 60), (50, 9), (34, 30), (80, 46), (1, 1))


def read(name: str, data: bytes) -> Image.Image:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / name
        path.write_bytes(data)
        return load_image(str(path))


@dataclass(frozen=True)
class Pictures:
    """The files, and what is read from them."""

    path: str = FOLDER

    def make(self) -> Files:
        files = pictures.files()
        decoded = {name: np.asarray(read(name, data)) for name, data in files.items()}
        moving = {}
        for name in ("animated.gif", "transparent.gif"):
            with Image.open(io.BytesIO(files[name])) as image:
                moving[name] = np.stack([np.asarray(f.convert("RGB")) for f in ImageSequence.Iterator(image)])
        image = Image.fromarray(decoded["rgb.png"])
        resized = {
            f"{name}.{height}x{width}": np.asarray(image.resize((width, height), resample=number))
            for name, number in FILTERS.items()
            for height, width in SIZES
        }
        made: Files = {f"{self.path}/files/{name}": data for name, data in files.items()}
        made[f"{self.path}/decoded.safetensors"] = to_safetensors(decoded)
        made[f"{self.path}/frames.safetensors"] = to_safetensors(moving)
        made[f"{self.path}/resized.safetensors"] = to_safetensors(resized)
        made[f"{self.path}/defaults.json"] = to_json({name: settings(name, {}) for name in CLASSES})
        return made


def processor(name: str, config: Mapping[str, Any]) -> Any:
    made = getattr(transformers, f"{name}Pil")(**json.loads(json.dumps(config)))
    if made.backend != "pil":
        raise ValueError(f"{name} is of the {made.backend} backend")
    return made


def settings(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as `save_pretrained` writes them."""
    return json.loads(processor(name, config).to_json_string())


@dataclass(frozen=True)
class ProcessorCase:
    """`config` is what the file says beside the class; `nested` puts it into `processor_config.json`."""

    name: str
    kind: str
    config: Mapping[str, Any]
    images: tuple[Any, ...]
    nested: bool = False
    key: str = "image_processor_type"

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}"

    def make(self) -> Files:
        files = pictures.files()
        given = [self.open(entry, files) for entry in self.images]
        base = self.kind.removesuffix("Fast").replace("FeatureExtractor", "ImageProcessor")
        out = processor(base, self.config)(given, return_tensors="np")
        tensors = {name: np.asarray(value) for name, value in out.items()}
        for name, value in tensors.items():
            kind = {"f": np.float32, "u": np.float32, "i": np.int64}[value.dtype.kind]
            tensors[name] = value.astype(kind)
        written = {self.key: self.kind, **self.config} if self.key else dict(self.config)
        file, content = ("preprocessor_config.json", written)
        if self.nested:
            file, content = ("processor_config.json", {"image_processor": written, "processor_class": "Processor"})
        case = {"images": list(self.images), "reference": {"transformers": transformers.__version__}}
        return {
            f"{self.path}/{file}": to_json(content),
            f"{self.path}/case.json": to_json(case),
            f"{self.path}/out.safetensors": to_safetensors(tensors),
        }

    def open(self, entry: Any, files: Files) -> Any:
        if isinstance(entry, list):
            return [self.open(frame, files) for frame in entry]
        if entry.startswith("animated.gif#"):
            with Image.open(io.BytesIO(files["animated.gif"])) as image:
                image.seek(int(entry.split("#")[1]))
                return image.convert("RGB")
        return read(entry, files[entry])


def goldens() -> Iterator[Pictures | ProcessorCase]:
    yield Pictures()
    square = {"height": 14, "width": 14}
    two = ("rgb.png", "tall.png")
    frames = [f"animated.gif#{index}" for index in range(4)]
    yield ProcessorCase("vit", "ViTImageProcessor", {"size": square}, two)
    yield ProcessorCase("vit-fast-nested", "ViTImageProcessorFast", {"size": {"height": 12, "width": 16}}, two, True)
    yield ProcessorCase("vit-size-number", "ViTFeatureExtractor", {"size": 13, "resample": 3}, two, key="feature_extractor_type")
    yield ProcessorCase("vit-size-list", "ViTImageProcessor", {"size": [9, 15], "resample": 1}, ("wide.png",))
    yield ProcessorCase("vit-jpeg", "ViTImageProcessor", {"size": square}, ("colour.jpg", "subsampled.jpg", "oriented-6.jpg"))
    yield ProcessorCase("vit-raw", "ViTImageProcessor", {"do_resize": False, "do_rescale": False, "do_normalize": False}, ("tiny.png",))
    yield ProcessorCase("vit-no-normalise", "ViTImageProcessor", {"size": square, "do_normalize": False}, ("palette.png",))
    yield ProcessorCase(
        "vit-normalise-levels",
        "ViTImageProcessor",
        {"size": square, "do_rescale": False, "image_mean": [120.0, 110.0, 100.0], "image_std": [60.0, 50.0, 40.0]},
        ("rgb.png",),
    )
    yield ProcessorCase("vit-scale", "ViTImageProcessor", {"size": square, "rescale_factor": 0.00784313725490196, "image_mean": [0.1, 0.2, 0.3]}, ("rgb.png",))
    yield ProcessorCase("vit-shortest-longest", "ViTImageProcessor", {"size": {"shortest_edge": 12, "longest_edge": 15}}, ("tall.png",))
    yield ProcessorCase("vit-most", "ViTImageProcessor", {"size": {"max_height": 15, "max_width": 18}}, ("wide.png",))
    yield ProcessorCase("vit-padded", "ViTImageProcessor", {"do_resize": False, "do_pad": True, "pad_size": {"height": 36, "width": 47}}, ("rgb.png",))
    crop = {"size": {"shortest_edge": 16}, "crop_size": {"height": 15, "width": 15}}
    yield ProcessorCase("clip", "CLIPImageProcessor", crop, ("rgb.png", "tall.png", "grey.png"))
    yield ProcessorCase("clip-numbers", "CLIPFeatureExtractor", {"size": 15, "crop_size": 15}, two, key="feature_extractor_type")
    yield ProcessorCase("clip-crop-wider", "CLIPImageProcessor", {"size": {"shortest_edge": 12}, "crop_size": {"height": 16, "width": 19}}, two)
    yield ProcessorCase("clip-crop-only", "CLIPImageProcessor", {"do_resize": False, "crop_size": {"height": 9, "width": 6}}, ("rgb.png", "tiny.png"))
    yield ProcessorCase("clip-nested", "CLIPImageProcessor", crop, ("rgba.png",), True)
    detr = {"size": {"shortest_edge": 20, "longest_edge": 30}}
    yield ProcessorCase("detr", "DetrImageProcessor", detr, ("rgb.png", "tall.png"))
    yield ProcessorCase("detr-numbers", "DetrFeatureExtractor", {"size": 18, "max_size": 29}, ("wide.png", "tall.png"), key="feature_extractor_type")
    yield ProcessorCase("detr-padded", "DetrImageProcessor", {**detr, "pad_size": {"height": 32, "width": 31}}, ("rgb.png", "tall.png"))
    yield ProcessorCase("detr-alone", "DetrImageProcessor", {**detr, "do_pad": False}, ("rgb.png",))
    yield ProcessorCase("detr-square", "DetrImageProcessor", {"size": {"height": 17, "width": 21}}, ("rgb.png", "tall.png"))
    yield ProcessorCase("llava", "LlavaImageProcessor", crop, two)
    yield ProcessorCase("llava-padded", "LlavaImageProcessor", {**crop, "do_pad": True}, two)
    grid = [[12, 24], [24, 12], [24, 24], [36, 12], [12, 36]]
    tiles = {"size": {"shortest_edge": 12}, "crop_size": {"height": 12, "width": 12}, "image_grid_pinpoints": grid}
    yield ProcessorCase("llava-next", "LlavaNextImageProcessor", tiles, ("rgb.png", "tall.png", "wide.png"))
    yield ProcessorCase("llava-next-one", "LlavaNextImageProcessor", tiles, ("tiny.png",), True)
    yield ProcessorCase("videomae", "VideoMAEImageProcessor", crop, (frames,))
    yield ProcessorCase("videomae-old", "VideoMAEFeatureExtractor", {"size": 14, "crop_size": 14}, (frames[:2], frames[2:]), key="feature_extractor_type")
