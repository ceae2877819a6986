"""CoCa of `open_clip`: two images of two texts, one with padding; pooled queries and contrastive captions, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weft_reference import environment, weights
from weft_reference.cases import Inputs, versions
from weft_reference.files import Files, to_json, to_safetensors
from weft_reference.inputs import floats

if wrong := environment.mismatches(environment.DIFFUSION):
    raise ImportError("; ".join(wrong) + f": pip install --no-deps -r {environment.DIFFUSION}")

import open_clip  # noqa: E402
from open_clip.coca_model import CoCa  # noqa: E402

MODELS = ("coca",)
ROOTS = MODELS

VISION = {
    **{"image_size": 32, "layers": 2, "width": 48, "head_width": 16, "patch_size": 8},
    **{"attentional_pool": True, "attn_pooler_queries": 7, "attn_pooler_heads": 4, "output_tokens": True},
}
TEXT = {
    **{"context_length": 10, "vocab_size": 99, "width": 32, "heads": 4, "layers": 2},
    **{"embed_cls": True, "output_tokens": True},
}
DECODER = {"context_length": 10, "vocab_size": 99, "width": 32, "heads": 4, "layers": 2, "attn_pooler_heads": 4}
BASE = {"embed_dim": 32, "vision_cfg": VISION, "text_cfg": TEXT, "multimodal_cfg": DECODER, "custom_text": True}


@dataclass(frozen=True)
class Case:
    """`path` is the folder under the goldens; `config` is the `model_cfg` of `open_clip_config.json`, which a `published` case has beside
    its weights; others have a `config.json` of what it is read as."""

    path: str
    config: Mapping[str, Any]
    inputs: Inputs
    notes: str
    published: bool = False

    def make(self) -> Files:
        torch.manual_seed(0)
        made = {name: value for name, value in self.config.items() if name != "custom_text"}
        model = CoCa(**made).float().eval()
        parameters = weights.fill(model)
        given = {name: torch.from_numpy(value) for name, value in self.inputs.items()}
        with torch.no_grad():
            # As `generate` calls it: the logits of every position.
            outputs = model(given["pixel_values"], given["input_ids"], output_labels=False)
            _, tokens = model._encode_image(given["pixel_values"])
        arrays = {name: value.contiguous().numpy() for name, value in {**outputs, "image_embs": tokens}.items()}
        tensors = {f"in.{name}": value for name, value in self.inputs.items()}
        tensors |= {f"out.{name}": value for name, value in arrays.items()}
        case = {
            "format": 1,
            "model": "open_clip:CoCa",
            "class": "CoCa",
            "reference": versions() | {"open_clip": open_clip.__version__},
            "weights": "file" if self.published else "rule",
            "tolerance": None,
            "tolerance_reason": None,
            "notes": self.notes,
            "parameters": {} if self.published else parameters,
        }
        stored = to_safetensors({name: value.numpy() for name, value in model.state_dict().items()})
        preprocess = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
        published = {"model_cfg": dict(self.config), "preprocess_cfg": preprocess}
        read = {"model_type": "open_clip:CoCa", "architectures": ["CoCa"], **made}
        own = {"open_clip_config.json": to_json(published), "open_clip_model.safetensors": stored}
        files = {
            **(own if self.published else {"config.json": to_json(read)}),
            "io.safetensors": to_safetensors(tensors),
            "case.json": to_json(case),
        }
        return {f"{self.path}/{name}": data for name, data in files.items()}


def goldens() -> Iterator[Case]:
    text = np.array([[97, 5, 8, 13, 98, 0, 0], [97, 3, 2, 21, 34, 55, 98]], dtype=np.int64)
    yield Case("coca/base", BASE, {"pixel_values": floats("coca", (2, 3, 32, 32)), "input_ids": text}, "Two images and texts, of which one is padded.")
    scaled = {
        **{"embed_dim": 32, "quick_gelu": True, "init_logit_bias": -10.0, "custom_text": True},
        "vision_cfg": VISION | {"width": 64, "ls_init_value": 0.1, "mlp_ratio": 3.0, "no_ln_pre": True},
        "text_cfg": TEXT | {"ls_init_value": 0.1, "mlp_ratio": 2.0, "pad_id": 1},
        "multimodal_cfg": DECODER | {"ls_init_value": 0.1},
    }
    text = np.array([[97, 5, 98, 1, 1]], dtype=np.int64)
    notes = "Layer scale, the quick GELU, a bias of logits, no norm before the layers, and another padding token."
    yield Case("coca/scaled", scaled, {"pixel_values": floats("coca", (1, 3, 32, 32)), "input_ids": text}, notes)
    small = {
        **{"embed_dim": 16, "custom_text": True},
        "vision_cfg": VISION | {"layers": 1, "width": 16, "head_width": 8, "mlp_ratio": 2.0, "attn_pooler_heads": 2},
        "text_cfg": TEXT | {"layers": 1, "width": 16, "heads": 2, "mlp_ratio": 2.0},
        "multimodal_cfg": DECODER | {"layers": 1, "width": 16, "heads": 2},
    }
    text = np.array([[97, 8, 7, 3, 98, 0, 0, 0, 0, 0]], dtype=np.int64)
    notes = "Files of the published names, a text of every position, and a pooler as wide as what it pools."
    yield Case("coca/file", small, {"pixel_values": floats("coca", (1, 3, 32, 32)), "input_ids": text}, notes, published=True)
