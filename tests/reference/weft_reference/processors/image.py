"""Goldens of `weft::image`: what the reference reads from picture files, resizes them to, and makes of them.

`files/` are the pictures; `decoded.safetensors` has what `load_image` gives for each, uint8 `[height, width, 3]`;
`jpeg.safetensors` has JPEG files of many kinds, `file.<name>`, and what they give, `<name>`; `frames.safetensors` the
frames of the animated ones; `resized.safetensors` has `<filter>.<height>x<width>` of one
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
from weft_reference.processors import jpegs, pictures

FOLDER = "processors/image"
CLASSES = (
    "ViTImageProcessor",
    "CLIPImageProcessor",
    "DetrImageProcessor",
    "LlavaImageProcessor",
    "LlavaNextImageProcessor",
    "VideoMAEImageProcessor",
    "BlipImageProcessor",
    "SiglipImageProcessor",
    "Siglip2ImageProcessor",
    "DeiTImageProcessor",
    "BitImageProcessor",
    "ChineseCLIPImageProcessor",
    "ConvNextImageProcessor",
    "BeitImageProcessor",
    "PvtImageProcessor",
    "SegformerImageProcessor",
    "MobileNetV1ImageProcessor",
    "MobileNetV2ImageProcessor",
    "MobileViTImageProcessor",
    "DPTImageProcessor",
    "GLPNImageProcessor",
    "ConditionalDetrImageProcessor",
    "DeformableDetrImageProcessor",
    "RTDetrImageProcessor",
    "YolosImageProcessor",
    "PoolFormerImageProcessor",
    "EfficientNetImageProcessor",
    "Gemma3ImageProcessor",
    "GotOcr2ImageProcessor",
    "Idefics3ImageProcessor",
    "SmolVLMImageProcessor",
    "LevitImageProcessor",
    "TextNetImageProcessor",
    "Qwen2VLImageProcessor",
    "SamImageProcessor",
    "OwlViTImageProcessor",
    "LlavaOnevisionImageProcessor",
    "Ernie4_5_VLMoeImageProcessor",
    "Glm4vImageProcessor",
    "Glm46VImageProcessor",
    "PaddleOCRVLImageProcessor",
    "PixtralImageProcessor",
    "DeepseekVLImageProcessor",
    "Owlv2ImageProcessor",
    "MaskFormerImageProcessor",
    "Mask2FormerImageProcessor",
    "EomtImageProcessor",
    "ViltImageProcessor",
    "Ovis2ImageProcessor",
    "JanusImageProcessor",
    "BridgeTowerImageProcessor",
    "AriaImageProcessor",
    "Idefics2ImageProcessor",
    "IdeficsImageProcessor",
    "MllamaImageProcessor",
    "Gemma4ImageProcessor",
    "HunYuanVLImageProcessor",
    "Cosmos3EdgeImageProcessor",
    "GraniteDoclingImageProcessor",
    "ChameleonImageProcessor",
    "DeepseekVLHybridImageProcessor",
    "FuyuImageProcessor",
    "Pix2StructImageProcessor",
    "GroundingDinoImageProcessor",
    "OneFormerImageProcessor",
    "Swin2SRImageProcessor",
    "VitMatteImageProcessor",
    "VitPoseImageProcessor",
    "SuperPointImageProcessor",
    "SuperGlueImageProcessor",
    "LightGlueImageProcessor",
    "EfficientLoFTRImageProcessor",
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
        made[f"{self.path}/jpeg.safetensors"] = to_safetensors(many_jpegs())
        made[f"{self.path}/frames.safetensors"] = to_safetensors(moving)
        made[f"{self.path}/resized.safetensors"] = to_safetensors(resized)
        made[f"{self.path}/defaults.json"] = to_json({name: settings(name, {}) for name in CLASSES})
        return made


def many_jpegs() -> dict[str, np.ndarray]:
    files = jpegs.files()
    made = {name: np.asarray(read(f"{name}.jpg", data)) for name, data in files.items()}
    return made | {f"file.{name}": np.frombuffer(data, np.uint8) for name, data in files.items()}


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
        # IDEFICS' gives the images of one text.
        out = out if hasattr(out, "items") else {"pixel_values": np.asarray(out)[None]}
        # Gemma's pictures are not cut, so that the number of crops is always 0; tokens and tiles are counted by positions and masks.
        counted = ("num_crops", "num_soft_tokens_per_image", "num_tiles")
        tensors = {name: np.asarray(value) for name, value in out.items() if name not in counted}
        for name, value in tensors.items():
            kind = {"f": np.float32, "u": np.float32, "i": np.int64, "b": np.bool_}[value.dtype.kind]
            tensors[name] = value.astype(np.int64 if name == "attention_mask" else kind)
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


SQUARE = {"height": 14, "width": 14}
CROP = {"size": {"shortest_edge": 16}, "crop_size": {"height": 15, "width": 15}}
TWO = ("rgb.png", "tall.png")
FRAMES = [f"animated.gif#{index}" for index in range(4)]
OLD = "feature_extractor_type"


def goldens() -> Iterator[Pictures | ProcessorCase]:
    yield Pictures()
    yield from plain()
    yield from cropped()
    yield from padded()
    yield from tiled()
    filling = {"size": SQUARE, "crop_to_patches": True, "max_patches": 6}
    every = ("rgb.png", "tall.png", "wide.png", "grey.png")
    yield ProcessorCase("got-ocr2-patches", "GotOcr2ImageProcessor", filling, every)
    yield ProcessorCase("got-ocr2-more", "GotOcr2ImageProcessor", filling | {"min_patches": 3, "resample": 2}, TWO)
    yield ProcessorCase("got-ocr2-whole", "GotOcr2ImageProcessor", filling | {"crop_to_patches": False}, TWO)
    covered = {"size": SQUARE, "crop_to_patches": True}
    yield ProcessorCase("ovis2", "Ovis2ImageProcessor", covered, (*every, "tiny.png"))
    yield ProcessorCase("ovis2-few", "Ovis2ImageProcessor", covered | {"max_patches": 3}, every)
    yield ProcessorCase("ovis2-whole", "Ovis2ImageProcessor", {"size": SQUARE}, TWO)
    yield ProcessorCase("janus", "JanusImageProcessor", {"size": {"height": 30, "width": 30}, "min_size": 9}, every)
    limits = {"size": {"shortest_edge": 18, "longest_edge": 40}}
    yield ProcessorCase("idefics2", "Idefics2ImageProcessor", limits, every)
    yield ProcessorCase("idefics2-quarters", "Idefics2ImageProcessor", limits | {"do_image_splitting": True}, ("tall.png", "tiny.png"))
    yield ProcessorCase("idefics", "IdeficsImageProcessor", {"image_size": 14}, (*every, "tiny.png"))
    yield ProcessorCase("mllama", "MllamaImageProcessor", {"size": SQUARE}, (*every, "tiny.png"))
    yield ProcessorCase("mllama-more", "MllamaImageProcessor", {"size": SQUARE, "max_image_tiles": 7}, (*every, "tiny.png"))
    soft = {"patch_size": 2, "pooling_kernel_size": 2, "max_soft_tokens": 70}
    yield ProcessorCase("gemma4", "Gemma4ImageProcessor", soft, (*every, "tiny.png"))
    rows = {"patch_size": 4, "size": {"shortest_edge": 600, "longest_edge": 1400}}
    yield ProcessorCase("cosmos3-edge", "Cosmos3EdgeImageProcessor", rows, (*every, "tiny.png"))
    yield ProcessorCase("hunyuan-vl", "HunYuanVLImageProcessor", rows | {"resample": 1}, (*every, "tiny.png"))
    pages = {"size": SQUARE, "max_patches": 6}
    yield ProcessorCase("granite-docling", "GraniteDoclingImageProcessor", pages, (*every, "tiny.png"))
    dense = {"size": SQUARE, "max_patches": 2, "dense_max_patches": 8, "dense_max_scale": 0.9}
    between = {"dense_min_aspect": 0.5, "dense_max_aspect": 2.0}
    yield ProcessorCase("granite-docling-dense", "GraniteDoclingImageProcessor", dense | between, (*every, "tiny.png"))
    whole = {"size": SQUARE, "crop_to_patches": False}
    yield ProcessorCase("granite-docling-whole", "GraniteDoclingImageProcessor", whole, TWO, True)
    two = {"size": {"height": 12, "width": 12}, "high_res_size": {"height": 31, "width": 31}, "min_size": 7}
    yield ProcessorCase("deepseek-vl-hybrid", "DeepseekVLHybridImageProcessor", two, every)
    yield ProcessorCase("chameleon", "ChameleonImageProcessor", CROP, every)
    flattened = {"patch_size": {"height": 5, "width": 5}, "max_patches": 19}
    yield ProcessorCase("pix2struct", "Pix2StructImageProcessor", flattened, (*every, "tiny.png"))
    squares = {"size": {"longest_edge": 45}, "max_image_size": {"longest_edge": 14}, "return_row_col_info": True}
    yield ProcessorCase("idefics3", "Idefics3ImageProcessor", squares, every)
    small = squares | {"size": {"longest_edge": 13}}
    yield ProcessorCase("idefics3-small", "Idefics3ImageProcessor", small, ("tall.png", "tiny.png"), True)
    whole = squares | {"do_image_splitting": False}
    yield ProcessorCase("smolvlm-whole", "SmolVLMImageProcessor", whole, ("wide.png", "grey.png"))
    patches = {"patch_size": 4, "size": {"shortest_edge": 600, "longest_edge": 1400}}
    yield ProcessorCase("qwen2-vl", "Qwen2VLImageProcessor", patches, (*every, "tiny.png"))
    old = {"patch_size": 3, "merge_size": 3, "temporal_patch_size": 1, "min_pixels": 100, "max_pixels": 500}
    yield ProcessorCase("ernie4_5-vl", "Ernie4_5_VLMoeImageProcessor", patches, (*every, "tiny.png"))
    yield ProcessorCase("qwen2-vl-pixels", "Qwen2VLImageProcessor", old, TWO, True)
    yield ProcessorCase("gemma3", "Gemma3ImageProcessor", {"size": SQUARE}, TWO)
    kept = {"size": {"height": 30, "width": 40}, "keep_aspect_ratio": True, "ensure_multiple_of": 7}
    yield ProcessorCase("dpt", "DPTImageProcessor", {"size": {"height": 30, "width": 40}, "ensure_multiple_of": 7}, ("tall.png", "wide.png"))
    for name in ("tall", "wide"):
        yield ProcessorCase(f"dpt-{name}", "DPTImageProcessor", kept, (f"{name}.png",))
    every_side = (*TWO, "wide.png", "tiny.png")
    for index, name in enumerate(every_side):
        older = {"pad_size": 7} if index == 1 else {}
        yield ProcessorCase(f"swin2sr-{name.removesuffix('.png')}", "Swin2SRImageProcessor", older, (name,))
    yield ProcessorCase("glpn", "GLPNImageProcessor", {"size_divisor": 8}, ("rgb.png",))
    yield ProcessorCase("videomae", "VideoMAEImageProcessor", CROP, (FRAMES,))
    old = {"size": 14, "crop_size": 14}
    yield ProcessorCase("videomae-old", "VideoMAEFeatureExtractor", old, (FRAMES[:2], FRAMES[2:]), key=OLD)


def plain() -> Iterator[ProcessorCase]:
    kind = "ViTImageProcessor"
    yield ProcessorCase("vit", kind, {"size": SQUARE}, TWO)
    yield ProcessorCase("vit-fast-nested", f"{kind}Fast", {"size": {"height": 12, "width": 16}}, TWO, True)
    yield ProcessorCase("vit-size-number", "ViTFeatureExtractor", {"size": 13, "resample": 3}, TWO, key=OLD)
    yield ProcessorCase("vit-size-list", kind, {"size": [9, 15], "resample": 1}, ("wide.png",))
    yield ProcessorCase("vit-jpeg", kind, {"size": SQUARE}, ("colour.jpg", "subsampled.jpg", "oriented-6.jpg"))
    raw = {"do_resize": False, "do_rescale": False, "do_normalize": False}
    yield ProcessorCase("vit-raw", kind, raw, ("tiny.png",))
    yield ProcessorCase("vit-no-normalise", kind, {"size": SQUARE, "do_normalize": False}, ("palette.png",))
    levels = {"do_rescale": False, "image_mean": [120.0, 110.0, 100.0], "image_std": [60.0, 50.0, 40.0]}
    yield ProcessorCase("vit-normalise-levels", kind, {"size": SQUARE, **levels}, ("rgb.png",))
    scale = {"rescale_factor": 0.00784313725490196, "image_mean": [0.1, 0.2, 0.3]}
    yield ProcessorCase("vit-scale", kind, {"size": SQUARE, **scale}, ("rgb.png",))
    between = {"size": {"shortest_edge": 12, "longest_edge": 15}}
    yield ProcessorCase("vit-shortest-longest", kind, between, ("tall.png",))
    yield ProcessorCase("vit-most", kind, {"size": {"max_height": 15, "max_width": 18}}, ("wide.png",))
    pad = {"do_resize": False, "do_pad": True, "pad_size": {"height": 36, "width": 47}}
    yield ProcessorCase("vit-padded", kind, pad, ("rgb.png",))


def cropped() -> Iterator[ProcessorCase]:
    kind = "CLIPImageProcessor"
    yield ProcessorCase("clip", kind, CROP, ("rgb.png", "tall.png", "grey.png"))
    yield ProcessorCase("clip-numbers", "CLIPFeatureExtractor", {"size": 15, "crop_size": 15}, TWO, key=OLD)
    wider = {"size": {"shortest_edge": 12}, "crop_size": {"height": 16, "width": 19}}
    yield ProcessorCase("clip-crop-wider", kind, wider, TWO)
    only = {"do_resize": False, "crop_size": {"height": 9, "width": 6}}
    yield ProcessorCase("clip-crop-only", kind, only, ("rgb.png", "tiny.png"))
    yield ProcessorCase("clip-nested", kind, CROP, ("rgba.png",), True)
    part = {"size": {"shortest_edge": 13}, "crop_pct": 0.7}
    yield ProcessorCase("convnext", "ConvNextImageProcessor", part, TWO)
    yield ProcessorCase("convnext-number", "ConvNextFeatureExtractor", {"size": 14}, TWO, key=OLD)


def padded() -> Iterator[ProcessorCase]:
    kind = "DetrImageProcessor"
    size = {"size": {"shortest_edge": 20, "longest_edge": 30}}
    yield ProcessorCase("detr", kind, size, TWO)
    numbers = {"size": 18, "max_size": 29}
    yield ProcessorCase("detr-numbers", "DetrFeatureExtractor", numbers, ("wide.png", "tall.png"), key=OLD)
    yield ProcessorCase("detr-padded", kind, {**size, "pad_size": {"height": 32, "width": 31}}, TWO)
    yield ProcessorCase("detr-alone", kind, {**size, "do_pad": False}, ("rgb.png",))
    yield ProcessorCase("detr-square", kind, {"size": {"height": 17, "width": 21}}, TWO)
    yield ProcessorCase("vilt", "ViltImageProcessor", {"size": {"shortest_edge": 24}, "size_divisor": 8}, (*TWO, "wide.png"))
    bridged = {"size": {"shortest_edge": 24}, "size_divisor": 4, "crop_size": {"shortest_edge": 20}}
    yield ProcessorCase("bridgetower", "BridgeTowerImageProcessor", bridged, (*TWO, "wide.png"))
    yield ProcessorCase("llava", "LlavaImageProcessor", CROP, TWO)
    yield ProcessorCase("llava-padded", "LlavaImageProcessor", {**CROP, "do_pad": True}, TWO)


def tiled() -> Iterator[ProcessorCase]:
    kind = "LlavaNextImageProcessor"
    grid = [[12, 24], [24, 12], [24, 24], [36, 12], [12, 36]]
    sizes = {"size": {"shortest_edge": 12}, "crop_size": {"height": 12, "width": 12}}
    yield ProcessorCase("llava-next", kind, {**sizes, "image_grid_pinpoints": grid}, (*TWO, "wide.png"))
    yield ProcessorCase("llava-next-one", kind, {**sizes, "image_grid_pinpoints": grid}, ("tiny.png",), True)
