"""Diffusion transformers over latents of several frames: two in a batch, non-square, all tensors filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from weft_reference.diffusion import ModelCase
from weft_reference.inputs import floats

MODELS = (
    *("wan-transformer-3d", "skyreels-v2-transformer-3d", "chronoedit-transformer-3d", "wan-vace-transformer-3d"),
    *("hunyuan-video-transformer-3d", "cogvideox-transformer-3d", "ltx-video-transformer-3d"),
    "unet-spatio-temporal-condition",
)
ROOTS = MODELS


def goldens() -> Iterator[ModelCase]:
    yield from wan()
    yield from hunyuan_video()
    yield from cogvideox()
    yield from ltx_video()
    yield from stable_video()


def wan() -> Iterator[ModelCase]:
    def case(
        name: str, notes: str, size: tuple[int, int, int], words: int = 5, cls: str = "Wan", **changes: Any
    ) -> ModelCase:
        config = {
            "num_attention_heads": 2,
            "attention_head_dim": 12,
            "in_channels": 4,
            "out_channels": 4,
            "text_dim": 6,
            "freq_dim": 16,
            "ffn_dim": 20,
            "num_layers": 2,
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, 4, *size), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
            "encoder_hidden_states": floats("text", (2, words, 6), -2.0, 2.0),
        }
        if config.get("image_dim"):
            inputs["encoder_hidden_states_image"] = floats("image", (2, 3, config["image_dim"]), -2.0, 2.0)
        if cls == "WanVACE":
            inputs["control_hidden_states"] = floats("control", (2, config["vace_in_channels"], *size), -2.0, 2.0)
            scales = np.array([1.0, 0.25], np.float32)[: len(config["vace_layers"])]
            inputs |= {"control_hidden_states_scale": scales} if name == "scales" else {}
        path = {"Wan": "wan", "SkyReelsV2": "skyreels-v2", "ChronoEdit": "chronoedit", "WanVACE": "wan-vace"}[cls]
        return ModelCase(f"{path}-transformer-3d/{name}", f"{cls}Transformer3DModel", config, inputs, notes)

    yield case("base", "Three frames, rows and columns in patches of two.", (3, 4, 6))
    yield case(
        "frames",
        "Frames in patches of two, no norm before cross-attention, other channels.",
        (4, 2, 3),
        patch_size=(2, 1, 1),
        cross_attn_norm=False,
        out_channels=6,
        attention_head_dim=10,
    )
    yield case("image", "An image before the text of 512 tokens.", (2, 4, 4), 512, image_dim=10, added_kv_proj_dim=24)
    yield case("base", "Three frames.", (3, 4, 6), cls="SkyReelsV2")
    image = {"image_dim": 10, "added_kv_proj_dim": 24}
    yield case("image", "An image before the text of 512 tokens.", (2, 4, 4), 512, cls="SkyReelsV2", **image)
    yield case("base", "Two frames, which stand seven apart.", (2, 4, 6), cls="ChronoEdit")
    yield case("video", "Three frames, which stand one apart.", (3, 4, 2), cls="ChronoEdit")
    yield case(
        "further",
        "Two frames, which stand four apart.",
        (2, 2, 4),
        cls="ChronoEdit",
        rope_temporal_skip_len=5,
        **{"num_layers": 1},
    )
    yield case(
        "base", "A control video after the first block.", (2, 4, 6), cls="WanVACE", vace_layers=[0], vace_in_channels=6
    )
    some = {"vace_layers": [0, 2], "vace_in_channels": 3, "num_layers": 3}
    yield case(
        "scales", "A control video after two of three blocks, with a scale for each.", (2, 4, 4), cls="WanVACE", **some
    )


def hunyuan_video() -> Iterator[ModelCase]:
    def case(name: str, notes: str, size: tuple[int, int, int], **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
            "out_channels": 4,
            "num_attention_heads": 2,
            "attention_head_dim": 8,
            "num_layers": 1,
            "num_single_layers": 2,
            "num_refiner_layers": 1,
            "text_embed_dim": 6,
            "pooled_projection_dim": 10,
            "rope_axes_dim": (2, 2, 4),
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, config["in_channels"], *size), -2.0, 2.0),
            "timestep": np.array([981.0, 20.0], np.float32),
            "encoder_hidden_states": floats("text", (2, 5, 6), -2.0, 2.0),
            "encoder_attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int64),
            "pooled_projections": floats("pooled", (2, 10), -2.0, 2.0),
        }
        if config.get("guidance_embeds", True):
            inputs["guidance"] = np.array([6000.0, 1000.0], np.float32)
        return ModelCase(
            f"hunyuan-video-transformer-3d/{name}", "HunyuanVideoTransformer3DModel", config, inputs, notes
        )

    yield case("base", "Two frames, a guidance scale, a text with padding.", (2, 4, 6))
    concat = {"image_condition_type": "latent_concat", "in_channels": 6, "guidance_embeds": False}
    yield case(
        "image",
        "An image beside the latents, no guidance scale, frames in patches of two.",
        (4, 2, 3),
        patch_size=1,
        patch_size_t=2,
        **concat,
    )
    yield case(
        "deep",
        "More layers, wider feed-forward layers, other frequencies.",
        (1, 4, 4),
        num_layers=2,
        num_refiner_layers=2,
        mlp_ratio=3.0,
        rope_theta=100.0,
        num_single_layers=1,
    )


def turned(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Cosines and sines as the reference takes them, as a pair."""
    tables = (inputs.pop("freqs_cos"), inputs.pop("freqs_sin")) if "freqs_cos" in inputs else None
    return {"sample": model(**inputs, image_rotary_emb=tables).sample}


def cogvideox() -> Iterator[ModelCase]:
    def case(name: str, notes: str, frames: int = 2, **changes: Any) -> ModelCase:
        config = {
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "in_channels": 4,
            "out_channels": 4,
            "time_embed_dim": 10,
            "text_embed_dim": 6,
            "num_layers": 2,
            "sample_width": 6,
            "sample_height": 4,
            "sample_frames": 5,
            "max_text_seq_length": 5,
        } | changes
        inputs = {
            "hidden_states": floats("latents", (2, frames, 4, 4, 6), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 6), -2.0, 2.0),
            "timestep": np.array([981, 20], np.int64).astype(np.float32),
        }
        if config.get("ofs_embed_dim"):
            inputs["ofs"] = np.array([2.0, 2.0], np.float32)
        if config.get("use_rotary_positional_embeddings"):
            patches = frames // (config.get("patch_size_t") or 1) * 6
            angles = np.repeat(floats("angles", (patches, 8), -3.0, 3.0), 2, axis=1)
            inputs |= {"freqs_cos": np.cos(angles), "freqs_sin": np.sin(angles)}
        return ModelCase(
            f"cogvideox-transformer-3d/{name}", "CogVideoXTransformer3DModel", config, inputs, notes, call=turned
        )

    yield case("base", "Sinusoidal places of frames, rows and columns.")
    yield case(
        "longer",
        "More frames than in training, other scales of places.",
        3,
        spatial_interpolation_scale=1.25,
        temporal_interpolation_scale=2.0,
    )
    rotary = {"use_rotary_positional_embeddings": True}
    yield case(
        "rotary",
        "Rotary position embeddings, other channels, no weights of norms.",
        out_channels=6,
        norm_elementwise_affine=False,
        **rotary,
    )
    yield case(
        "learned",
        "Learned places besides, no biases of projections.",
        use_learned_positional_embeddings=True,
        attention_bias=False,
        **rotary,
    )
    five = {"patch_size_t": 2, "patch_bias": False, "ofs_embed_dim": 10}
    yield case("frames", "Frames in patches of two and an offset, as version 1.5.", 4, **five, **rotary)


def ltx_video() -> Iterator[ModelCase]:
    def case(name: str, notes: str, mask: bool = True, **changes: Any) -> ModelCase:
        config = {
            "in_channels": 4,
            "out_channels": 4,
            "num_attention_heads": 2,
            "attention_head_dim": 16,
            "cross_attention_dim": 32,
            "num_layers": 2,
            "caption_channels": 6,
        } | changes
        grid = np.stack(
            np.meshgrid(np.arange(2) * 8 / 25, np.arange(2) * 32, np.arange(3) * 32, indexing="ij")
        ).reshape(3, 12)
        inputs = {
            "hidden_states": floats("latents", (2, 12, 4), -2.0, 2.0),
            "encoder_hidden_states": floats("text", (2, 5, 6), -2.0, 2.0),
            "timestep": np.array([981.0, 20.5], np.float32),
            "encoder_attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0] if mask else [1] * 5], np.int64),
            "video_coords": np.stack([grid, grid + np.array([[1.0], [64.0], [480.0]])]).astype(np.float32),
        }
        return ModelCase(f"ltx-video-transformer-3d/{name}", "LTXVideoTransformer3DModel", config, inputs, notes)

    yield case("base", "A text with padding, two grids of places, of which two dimensions do not turn.")
    yield case(
        "plain",
        "Weights of norms, no biases, other channels, all of the width turns.",
        False,
        norm_elementwise_affine=True,
        attention_bias=False,
        attention_out_bias=False,
        out_channels=6,
        num_attention_heads=3,
        attention_head_dim=8,
        cross_attention_dim=24,
    )


def stable_video() -> Iterator[ModelCase]:
    """Normalisation has 32 groups, whatever the configuration."""

    def case(name: str, notes: str, size: tuple[int, int, int], **changes: Any) -> ModelCase:
        config = {
            "in_channels": 5,
            "block_out_channels": (32, 64),
            "down_block_types": ("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
            "up_block_types": ("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
            "addition_time_embed_dim": 4,
            "projection_class_embeddings_input_dim": 12,
            "layers_per_block": 1,
            "cross_attention_dim": 12,
            "num_attention_heads": 2,
        } | changes
        frames, height, width = size
        inputs = {
            "sample": floats("latents", (2, frames, 5, height, width), -2.0, 2.0),
            "timestep": np.array([1.5, -0.25], np.float32),
            "encoder_hidden_states": floats("image", (2, 2, 12), -2.0, 2.0),
            "added_time_ids": np.array([[6.0, 127.0, 0.02], [24.0, 30.0, 0.5]], np.float32),
        }
        path, cls = "unet-spatio-temporal-condition", "UNetSpatioTemporalConditionModel"
        return ModelCase(f"{path}/{name}", cls, config, inputs, notes)

    yield case("base", "Three frames, a block with cross-attention and one without.", (3, 4, 6))
    yield case(
        "odd",
        "A height and a width that two halves do not make up, heads and layers by block.",
        (2, 5, 7),
        layers_per_block=(2, 1),
        num_attention_heads=(1, 4),
        transformer_layers_per_block=(2, 1),
        out_channels=3,
    )
