"""DINOv3: images of several sizes, whose patches turn with their places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import DINOv3ViTConfig, PreTrainedModel
from transformers.image_utils import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, load_image, to_numpy_array

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.files import to_json
from weft_reference.inputs import floats
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase

TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "patch_size": 4}


def case(name: str, notes: str, size: tuple[int, int] = (12, 12), store: Store | None = None, **changes: Any) -> Case:
    pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
    config = DINOv3ViTConfig(**(TINY | {"image_size": 12, "num_register_tokens": 3} | changes))
    return Case(f"dinov3_vit/{name}", "DINOv3ViTModel", config, pixels, notes, store)


class Processor:
    """`DINOv3ViTImageProcessor` as published checkpoints name it; itself it runs on torchvision alone."""

    size = {"height": 8, "width": 12}

    def save_pretrained(self, folder: Path) -> None:
        settings = {
            "image_processor_type": "DINOv3ViTImageProcessorFast",
            "do_resize": True,
            "size": self.size,
            "resample": 2,
            "do_center_crop": None,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": IMAGENET_DEFAULT_MEAN,
            "image_std": IMAGENET_DEFAULT_STD,
        }
        (Path(folder) / "preprocessor_config.json").write_bytes(to_json(settings))

    def __call__(self, file: str) -> torch.Tensor:
        """What it does: levels between 0 and 1, which are resized and then normalised."""
        levels = torch.from_numpy(to_numpy_array(load_image(file).convert("RGB"))).permute(2, 0, 1)[None] / 255
        size = (self.size["height"], self.size["width"])
        levels = torch.nn.functional.interpolate(levels, size, mode="bilinear", antialias=True)
        mean, std = (torch.tensor(of).view(1, 3, 1, 1) for of in (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD))
        return (levels - mean) / std


def features(_task: str, model: PreTrainedModel, _folder: Path, processor: Processor | None = None) -> Answer:
    """What the pipeline answers."""

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        def one(file: str) -> Any:
            outputs = model(pixel_values=(processor or Processor())(file))
            return (outputs.pooler_output if parameters.get("pool") else outputs.last_hidden_state).tolist()

        return one(inputs) if isinstance(inputs, str) else [one(file) for file in inputs]

    return answer


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Two images, three registers.")
    yield case("no-registers", "The class token alone before the patches; a row of them.", (4, 20), num_register_tokens=0)
    yield case("larger", "Larger images that are no multiple of a patch, another base.", (18, 27), rope_theta=10.0)
    biases = {"query_bias": False, "key_bias": True, "value_bias": False, "proj_bias": False, "mlp_bias": False}
    yield case("gated", "Gated MLPs, biases of keys alone.", use_gated_mlp=True, hidden_act="silu", **biases)
    yield case(
        "other-sizes",
        "Five heads of eight, an epsilon that matters.",
        (8, 8),
        hidden_size=40,
        num_attention_heads=5,
        layer_norm_eps=0.1,
        hidden_act="relu",
    )
    notes = "model.safetensors as save_pretrained writes it, under the names of published checkpoints."
    yield case("file", notes, store=stores.whole, num_hidden_layers=1)
    yield from backbone("dinov3_vit", "DINOv3ViT", TINY | {"num_register_tokens": 3, "apply_layernorm": False}, (18, 27))
    task = "image-feature-extraction"
    yield VisionTaskCase(
        f"dinov3_vit/tasks/{task}",
        task,
        "DINOv3ViTModel",
        DINOv3ViTConfig(**(TINY | {"num_register_tokens": 2})),
        Processor(),
        (Call("rgb.png"), Call(["tall.png", "wide.png"]), Call("grey.png", {"pool": True})),
        "Pictures that are resized without rounding.",
        answers=features,
    )
    yield case("file-bf16", "Weights in bfloat16.", store=stores.as_dtype(torch.bfloat16), num_hidden_layers=1)
