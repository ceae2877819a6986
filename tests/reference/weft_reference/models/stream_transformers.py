"""Diffusion transformers of double and single stream blocks, kin of Flux: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats

MODELS = (
    "ovis-image-transformer-2d",
    "longcat-image-transformer-2d",
    "bria-transformer-2d",
    "chroma-transformer-2d",
    "flux2-transformer-2d",
    "qwen-image-transformer-2d",
    "auraflow-transformer-2d",
    "flux-controlnet",
    "sd3-controlnet",
)
ROOTS = MODELS

SMALL = {
    "patch_size": 1,
    "in_channels": 8,
    "num_layers": 2,
    "num_single_layers": 2,
    "attention_head_dim": 8,
    "num_attention_heads": 3,
    "joint_attention_dim": 12,
    "axes_dims_rope": (2, 2, 4),
}
ROWS, COLUMNS, WORDS = 2, 3, 5


def packed(timestep: tuple[float, float] = (1.0, 0.25), axes: int = 3, text: int = 12) -> dict[str, np.ndarray]:
    """Latents as tokens, whose last two axes are rows and columns, and a text."""
    places = [(0,) * (axes - 2) + (row, column) for row in range(ROWS) for column in range(COLUMNS)]
    return {
        "hidden_states": floats("latents", (2, ROWS * COLUMNS, 8), -2.0, 2.0),
        "encoder_hidden_states": floats("text", (2, WORDS, text), -2.0, 2.0),
        "timestep": np.array(timestep, np.float32),
        "img_ids": np.array(places, np.int64),
        "txt_ids": np.zeros((WORDS, axes), np.int64),
    }


def goldens() -> Iterator[ModelCase]:
    yield from kin()
    yield from chroma()
    yield from flux2()
    yield from qwen_image()
    yield from auraflow()
    yield from controlnets()


def case(path: str, cls: str, notes: str, inputs: dict[str, np.ndarray], **changes: Any) -> ModelCase:
    return ModelCase(path, cls, SMALL | changes, inputs, notes)


def kin() -> Iterator[ModelCase]:
    """Those that differ from Flux in what they are conditioned on."""
    words = {"txt_ids": np.array([(0, word, word) for word in range(WORDS)], np.int64)}
    ovis = ("ovis-image-transformer-2d", "OvisImageTransformer2DModel")
    yield case(f"{ovis[0]}/base", ovis[1], "Places of texts, other channels than the input's.", packed() | words, out_channels=6)
    yield case(f"{ovis[0]}/same", ovis[1], "As many channels as the input, patches of two.", packed(), out_channels=None, patch_size=2)
    longcat = ("longcat-image-transformer-2d", "LongCatImageTransformer2DModel")
    yield case(f"{longcat[0]}/base", longcat[1], "Places of texts.", packed() | words)
    yield case(f"{longcat[0]}/single", longcat[1], "More single than double stream blocks.", packed(), num_layers=1, num_single_layers=3)
    bria = ("bria-transformer-2d", "BriaTransformer2DModel")
    yield case(f"{bria[0]}/base", bria[1], "Timesteps as schedulers count them.", packed((981.0, 20.5)))
    yield case(f"{bria[0]}/theta", bria[1], "Other frequencies, patches of two.", packed((981.0, 20.5)) | words, rope_theta=500, patch_size=2)


def chroma() -> Iterator[ModelCase]:
    path, cls = "chroma-transformer-2d", "ChromaTransformer2DModel"
    small = {"approximator_num_channels": 16, "approximator_hidden_dim": 20, "approximator_layers": 2}
    mask = np.ones((2, WORDS + ROWS * COLUMNS), np.float32)
    mask[0, 3:WORDS] = 0.0
    yield case(f"{path}/base", cls, "No mask.", packed(), **small)
    yield case(f"{path}/mask", cls, "A text with padding, other channels, one layer.", packed() | {"attention_mask": mask},
               **small | {"approximator_layers": 1}, out_channels=6, num_layers=1)


def flux2() -> Iterator[ModelCase]:
    path, cls = "flux2-transformer-2d", "Flux2Transformer2DModel"
    small = {"axes_dims_rope": (2, 2, 2, 2), "timestep_guidance_channels": 16}
    guidance = {"guidance": np.array([3.5, 1.0], np.float32)}
    words = {"txt_ids": np.array([(0, 0, 0, word) for word in range(WORDS)], np.int64)}
    yield case(f"{path}/base", cls, "A guidance scale, places of words.", packed(axes=4) | guidance | words, **small)
    yield case(f"{path}/klein", cls, "No guidance scale, as klein; another ratio of the feed-forward layers, other frequencies.",
               packed(axes=4) | words, **small | {"guidance_embeds": False, "mlp_ratio": 2.5, "rope_theta": 500, "eps": 1e-4, "out_channels": 6})


def shaped(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Shapes of images as the reference takes them: a list for each of the batch."""
    shapes = [tuple(sides) for sides in inputs.pop("img_shapes").tolist()]
    return {"sample": model(**inputs, img_shapes=[shapes] * len(inputs["hidden_states"])).sample}


def qwen_image() -> Iterator[ModelCase]:
    def case(name: str, notes: str, shapes: list[tuple[int, int, int]], **changes: Any) -> ModelCase:
        tokens = sum(frames * rows * columns for frames, rows, columns in shapes)
        inputs = {
            "hidden_states": floats("latents", (2, tokens, 8), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, WORDS, 12), -2.0, 2.0),
            "timestep": np.array([1.0, 0.25], np.float32),
            "img_shapes": np.array(shapes, np.int64),
        }
        if changes.pop("mask", False):
            inputs["encoder_hidden_states_mask"] = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int64)
        small = {key: value for key, value in SMALL.items() if key != "num_single_layers"}
        config = small | {"out_channels": 3, "patch_size": 2} | changes
        return ModelCase(f"qwen-image-transformer-2d/{name}", "QwenImageTransformer2DModel", config, inputs, notes, call=shaped)

    yield case("base", "One image whose sides are odd, no mask.", [(1, 3, 5)])
    yield case("edit", "Another image behind it, a text with padding.", [(1, 2, 3), (1, 4, 2)], mask=True, out_channels=None)
    yield case("zero", "Images to edit at the timestep 0.", [(1, 2, 3), (1, 1, 2), (1, 2, 2)], zero_cond_t=True, mask=True)


def auraflow() -> Iterator[ModelCase]:
    def case(name: str, notes: str, size: tuple[int, int], **changes: Any) -> ModelCase:
        inputs = {
            "hidden_states": floats("latents", (2, 4, *size), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, WORDS, 12), -2.0, 2.0),
            "timestep": np.array([1.0, 0.25], np.float32),
        }
        config = {
            "num_mmdit_layers": 2,
            "num_single_dit_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 3,
            "joint_attention_dim": 12,
            "caption_projection_dim": 24,
            "pos_embed_max_size": 64,
        } | changes
        return ModelCase(f"auraflow-transformer-2d/{name}", "AuraFlowTransformer2DModel", config, inputs, notes)

    yield case("base", "Fewer patches than positions, an odd number of columns.", (8, 10))
    yield case("pixels", "Patches of one position, as many as are stored; no single stream blocks, other channels.", (5, 4),
               patch_size=1, pos_embed_max_size=27, num_single_dit_layers=0, out_channels=6)


def controlled(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What is added after each block, with the scale as the reference takes it."""
    made = model(**inputs | {"conditioning_scale": inputs.get("conditioning_scale", torch.ones(1)).item()})
    tensors = {}
    for name in ("controlnet_block_samples", "controlnet_single_block_samples"):
        tensors |= {f"{name}.{index}": sample for index, sample in enumerate(getattr(made, name, None) or ())}
    return tensors


def controlnets() -> Iterator[ModelCase]:
    control = {"controlnet_cond": floats("control", (2, ROWS * COLUMNS, 8), -2.0, 2.0), "pooled_projections": floats("pooled", (2, 10))}
    scale = {"conditioning_scale": np.array([0.75], np.float32)}
    path, cls = "flux-controlnet", "FluxControlNetModel"
    config = SMALL | {"pooled_projection_dim": 10}
    yield ModelCase(f"{path}/base", cls, config, packed() | control | scale, "A scale, two blocks of each kind.", call=controlled)
    union = {"controlnet_mode": np.array([[4], [1]], np.int64), "guidance": np.array([3.5, 1.0], np.float32)}
    more = {"num_mode": 5, "guidance_embeds": True, "num_single_layers": 0}
    yield ModelCase(f"{path}/union", cls, config | more, packed() | control | union, "Modes, a guidance scale, no single stream blocks.", call=controlled)

    def stable(name: str, notes: str, channels: int = 4, **changes: Any) -> ModelCase:
        config = {
            "sample_size": 8,
            "in_channels": 4,
            "num_layers": 2,
            "attention_head_dim": 8,
            "num_attention_heads": 3,
            "joint_attention_dim": 12,
            "caption_projection_dim": 24,
            "pooled_projection_dim": 10,
            "pos_embed_max_size": 7,
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, 8, 12), -2.0, 2.0),
            "controlnet_cond": floats("control", (2, channels, 8, 12), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, WORDS, 12), -2.0, 2.0),
            "pooled_projections": floats("pooled", (2, 10)),
            "timestep": np.array([981.0, 20.5], np.float32),
        } | scale
        return ModelCase(f"sd3-controlnet/{name}", "SD3ControlNetModel", config, inputs, notes, call=controlled)

    yield stable("base", "Fewer patches than positions, not evenly.")
    yield stable("extra", "One channel more, queries and keys normalised.", 5, extra_conditioning_channels=1, qk_norm="rms_norm")
