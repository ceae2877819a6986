"""Text in pictures: where it is, and what it says. The reference's processors need `torchvision`: here its own functions are called."""

from __future__ import annotations

import ast
import json
import math
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn.functional import interpolate, pad
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference.cases import Store
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.made import each, opened

# A probability nearer than this to a threshold could lie on its other side.
TOO_CLOSE = 1e-5
DETECTION = {
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "rescale_factor": 1 / 255,
    "resample": 2,
    "image_mean": [0.406, 0.456, 0.485],
    "image_std": [0.225, 0.224, 0.229],
    "limit_side_len": 960,
    "limit_type": "max",
    "max_side_limit": 4000,
}
LINE = {"height": 48, "width": 320}
RECOGNITION = DETECTION | {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": LINE, "pad_size": LINE, "do_pad": True, "max_image_width": 3200}


@lru_cache
def functions(model: str) -> dict[str, Any]:
    """The methods of an image processor whose file cannot be imported without `torchvision`."""
    tree = ast.parse((Path(transformers.__file__).parent / "models" / model / f"image_processing_{model}.py").read_text())
    (made,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("ImageProcessor")]
    wanted = [node for node in made.body if isinstance(node, ast.FunctionDef) and node.name != "_preprocess"]
    for node in wanted:
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
    names: dict[str, Any] = {"np": np, "math": math, "torch": torch, "SizeDict": SimpleNamespace}
    if model.endswith("det"):
        import cv2

        names["cv2"] = cv2
    exec(compile(ast.Module(wanted, []), model, "exec"), names)  # noqa: S102
    return {node.name: names[node.name] for node in wanted}


def bound(model: str, settings: dict[str, Any]) -> Any:
    """A processor with these settings and the reference's methods."""
    made = SimpleNamespace(**settings)
    for name, function in functions(model).items():
        setattr(made, name, function.__get__(made))
    return made


class Processor:
    """An image processor by its file alone."""

    def __init__(self, kind: str, settings: dict[str, Any]) -> None:
        self.kind, self.settings = kind, settings

    def save_pretrained(self, folder: Path) -> None:
        text = json.dumps({"image_processor_type": self.kind} | self.settings, indent=2, ensure_ascii=False)
        (folder / "preprocessor_config.json").write_text(text + "\n")


def tensor(path: str) -> torch.Tensor:
    return torch.from_numpy(np.array(opened(path))).permute(2, 0, 1)[None].float()


def normalized(pixels: torch.Tensor, settings: dict[str, Any]) -> torch.Tensor:
    """Rescaled and normalised at once, as on torchvision."""
    unit = 1.0 / settings["rescale_factor"]
    mean, std = (torch.tensor(settings[name]).view(3, 1, 1) * unit for name in ("image_mean", "image_std"))
    return (pixels - mean) / std


def detection(model: str, model_class: str, config: PreTrainedConfig, options: dict[str, Any], store: Store | None = None) -> VisionTaskCase:
    settings = DETECTION | {"limit_side_len": 64}

    def answers(_task: str, made: PreTrainedModel, _folder: Path) -> Answer:
        processor = bound("pp_ocrv5_server_det", settings)

        def one(path: str, parameters: dict[str, Any]) -> Any:
            pixels = tensor(path)
            size, own = processor.get_image_size(pixels[0], *(settings[name] for name in ("limit_side_len", "limit_type", "max_side_limit")))
            pixels = interpolate(pixels, size=(size.height, size.width), mode="bilinear", antialias=True)
            outputs = made(pixel_values=normalized(pixels, settings)[:, [2, 1, 0]])
            if (outputs.last_hidden_state - parameters.get("threshold", 0.3)).abs().min() < TOO_CLOSE:
                raise ValueError(f"{path}: a probability is too close to the threshold; choose another")
            found = processor.post_process_object_detection(outputs, target_sizes=[own], **parameters)[0]
            both = zip(found["scores"].tolist(), found["boxes"].tolist(), strict=True)
            return [{"score": score, "box": box} for score, box in both]

        return each(one)

    calls = (Call("page.png", options), Call(["rgb.png", "wide.png"], options | {"unclip_ratio": 2.0, "min_size": 3}), Call("page.png"))
    notes = "A page; two pictures whose lines grow more; the usual thresholds."
    processor = Processor("PPOCRV5ServerDetImageProcessor", settings)
    return VisionTaskCase(f"{model}/tasks/text-detection", "text-detection", model_class, config, processor, calls, notes, answers=answers, store=store)


def recognition(model: str, model_class: str, config: PreTrainedConfig, newer: bool, store: Store | None = None) -> VisionTaskCase:
    """`newer` processors make levels of what they resize, and take blue for red."""
    file = "pp_ocrv6_small_rec" if newer else "pp_ocrv5_server_rec"
    characters = ["blank", *"aw\u00e9\u6c34&4"][: config.head_out_channels]
    settings = RECOGNITION | {"character_list": characters}

    def answers(_task: str, made: PreTrainedModel, _folder: Path) -> Answer:
        sizes = {name: settings[name] for name in ("size", "max_image_width", "character_list")}
        processor = bound(file, sizes)

        def one(path: str, _parameters: dict[str, Any]) -> Any:
            pixels = tensor(path)
            size = processor.get_target_size([pixels.shape[-2:]])
            pixels = interpolate(pixels, size=(size.height, size.width), mode="bilinear", antialias=not newer)
            pixels = pixels.round()[:, [2, 1, 0]] if newer else pixels
            pixels = normalized(pixels, settings)
            if size.width < LINE["width"]:
                pixels = pad(pixels, (0, LINE["width"] - size.width))
            outputs = made(pixel_values=pixels)
            best = outputs.last_hidden_state.topk(2).values
            if (best[..., 0] - best[..., 1]).min() < TOO_CLOSE:
                raise ValueError(f"{path}: two characters are too close; choose another configuration")
            return processor.post_process_text_recognition(outputs)[0]

        return each(one)

    kind = "PPOCRV6SmallRecImageProcessor" if newer else "PPOCRV5ServerRecImageProcessor"
    calls = (Call("line.png"), Call(["wide.png", "rgb.png"]))
    notes = "A line, and two pictures, of which one is padded less."
    return VisionTaskCase(f"{model}/tasks/text-recognition", "text-recognition", model_class, config, Processor(kind, settings), calls, notes, answers=answers, store=store)


class Characters:
    """A tokenizer by its file alone, which lists characters."""

    def __init__(self, vocabulary: list[str]) -> None:
        self.vocabulary = vocabulary

    def save_pretrained(self, folder: Path) -> None:
        (folder / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(self.vocabulary)}) + "\n")


def scene_text(model: str, model_class: str, config: PreTrainedConfig, processor: Any, vocabulary: list[str]) -> VisionTaskCase:
    """`MgpstrProcessor.char_decode`: its other vocabularies are those of two other checkpoints, which it downloads."""

    def answers(_task: str, made: PreTrainedModel, folder: Path) -> Answer:
        images = transformers.AutoImageProcessor.from_pretrained(folder)
        decode = transformers.models.mgp_str.processing_mgp_str.MgpstrProcessor._decode_helper
        tokenizer = transformers.MgpstrTokenizer(str(folder / "vocab.json"))
        reader = SimpleNamespace(char_decode=lambda ids: [text.replace(" ", "") for text in tokenizer.batch_decode(ids)])

        def one(path: str, _parameters: dict[str, Any]) -> Any:
            logits = made(**images(opened(path), return_tensors="pt")).logits[0]
            best = logits.topk(2).values
            if (best[..., 0] - best[..., 1]).min() < TOO_CLOSE:
                raise ValueError(f"{path}: two characters are too close; choose another configuration")
            texts, scores = decode(reader, logits, "char")
            return {"text": texts[0], "score": float(scores[0])}

        return each(one)

    calls = (Call("line.png"), Call(["wide.png", "rgb.png", "tiny.png"]))
    notes = "A line, and three pictures; some texts end, others do not."
    files = Characters(vocabulary)
    return VisionTaskCase(f"{model}/tasks/text-recognition", "text-recognition", model_class, config, processor, calls, notes, files, answers=answers)
