"""Pipelines whose weights are in one file under the names of the original code: what the reference's `from_single_file`
makes of them, and the file with nothing beside it but tokenizers and what it does not hold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from weft_reference.byte_pairs import clip_tokenizer
from weft_reference.diffusion import diffusers
from weft_reference.files import Files, folder_files
from weft_reference.models.schedulers import STABLE_DIFFUSION
from weft_reference.models.text_to_image import original_names as original
from weft_reference.models.text_to_image import z_image
from weft_reference.models.text_to_image.components import POSITIONS, autoencoder, clip, denoiser, t5, t5_tokenizer
from weft_reference.models.text_to_image.flows import qwen_image, unpacked_fours
from weft_reference.models.text_to_image.flux import unpacked
from weft_reference.models.text_to_image.pipelines import PipelineCase, Run

FILE = "model.safetensors"
Tensors = dict[str, torch.Tensor]
# What the layouts imply: groups of 32 channels, CLIP's heads and those of the later U-Nets 64 wide.
UNET = {
    "block_out_channels": (32, 32),
    "norm_num_groups": 32,
    "sample_size": 64,
    "layers_per_block": 1,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 64,
    "attention_head_dim": 8,
}
WIDE = {"hidden_size": 64, "intermediate_size": 24, "num_attention_heads": 1, "projection_dim": 64}
PNDM = {"skip_prk_steps": True, "set_alpha_to_one": False, "steps_offset": 1}
SIZE = {"height": 24, "width": 16}


@dataclass(frozen=True)
class SingleFileCase(PipelineCase):
    """`write` gives the file's tensors of some components; `half` rounds them to half precision; `beside` keeps the
    configurations."""

    write: Callable[[Any], Mapping[str, Tensors]] = lambda _pipeline: {}
    half: bool = True
    beside: bool = False

    def make(self) -> Files:
        whole, held = self.build(), {}
        if self.half:
            for component in (whole.components[name] for name in self.write(whole)):
                component.half().float()
        for tensors in self.write(whole).values():
            held |= {
                name: tensor.half() if self.half and tensor.is_floating_point() else tensor
                for name, tensor in tensors.items()
            }
        data = save({name: tensor.contiguous() for name, tensor in held.items()})
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            whole.save_pretrained(folder)
            files = folder_files(folder)
            (folder / FILE).write_bytes(data)
            # The reference reads the file, too, and makes the same of it.
            read = original.opened(whole, folder / FILE, folder)
        made = self.runs_of(read)
        for name, want in self.runs_of(whole).items():
            if name.endswith("safetensors"):
                original.expect_same(made[name], want)
        kept = {name: file for name, file in files.items() if self.keeps(name, set(self.write(whole)))}
        return {f"{self.path}/{name}": file for name, file in {**kept, FILE: data, **made}.items()}

    def keeps(self, name: str, held: set[str]) -> bool:
        component = name.split("/")[0]
        if name in ("model_index.json", "scheduler/scheduler_config.json"):
            return self.beside
        return component not in held or (self.beside and name.endswith("config.json"))

    def runs_of(self, pipeline: Any) -> Files:
        """The calls and what they make, without the folder."""
        made = PipelineCase(
            self.path, lambda: pipeline, self.runs, given=self.given, call=self.call, latents=self.latents
        ).make()
        own = {f"{self.path}/{name}" for name in ("calls.json", *(f"{run.name}.safetensors" for run in self.runs))}
        return {name.removeprefix(f"{self.path}/"): file for name, file in made.items() if name in own}


def vae(**changes: Any) -> Any:
    return autoencoder(**{"block_out_channels": (32, 32), "norm_num_groups": 32, "sample_size": 512} | changes)


def stable_diffusion(**unet: Any) -> Any:
    return diffusers.StableDiffusionPipeline(
        vae=vae(),
        text_encoder=clip(**WIDE),
        tokenizer=clip_tokenizer(POSITIONS),
        unet=denoiser("UNet2DConditionModel", **UNET | unet),
        scheduler=diffusers.PNDMScheduler(**STABLE_DIFFUSION, **PNDM),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def stable_diffusion_2(prediction: str = "v_prediction") -> Any:
    pipeline = stable_diffusion(use_linear_projection=True, attention_head_dim=(1, 1))
    pipeline.text_encoder = clip(**WIDE, hidden_act="gelu")
    pipeline.scheduler = diffusers.DDIMScheduler(
        **STABLE_DIFFUSION, clip_sample=False, set_alpha_to_one=False, steps_offset=1, prediction_type=prediction
    )
    return pipeline


def stable_diffusion_xl() -> Any:
    unet = {
        "block_out_channels": (32, 64),
        "sample_size": 128,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "transformer_layers_per_block": (1, 2),
        "addition_embed_type": "text_time",
        "addition_time_embed_dim": 256,
        "projection_class_embeddings_input_dim": 6 * 256 + 20,
        "cross_attention_dim": 64 + 128,
        "use_linear_projection": True,
        "attention_head_dim": (1, 1),
    }
    second = WIDE | {"hidden_size": 128, "num_attention_heads": 2, "projection_dim": 20}
    return diffusers.StableDiffusionXLPipeline(
        vae=vae(scaling_factor=0.13025),
        text_encoder=clip(**WIDE),
        text_encoder_2=clip(projected=True, hidden_act="gelu", **second),
        tokenizer=clip_tokenizer(POSITIONS),
        tokenizer_2=clip_tokenizer(POSITIONS, pad_token="!"),
        unet=denoiser("UNet2DConditionModel", **UNET | unet),
        scheduler=diffusers.EulerDiscreteScheduler(**STABLE_DIFFUSION, timestep_spacing="leading", steps_offset=1),
        add_watermarker=False,
    )


PLAIN_VAE = {"use_quant_conv": False, "use_post_quant_conv": False}


def stable_diffusion_3() -> Any:
    transformer = {
        "sample_size": 128,
        "patch_size": 2,
        "in_channels": 4,
        "out_channels": 4,
        "num_layers": 3,
        "attention_head_dim": 64,
        "num_attention_heads": 1,
        "joint_attention_dim": 200,
        "caption_projection_dim": 64,
        "pooled_projection_dim": 128 + 20,
        "pos_embed_max_size": 13,
        "dual_attention_layers": (0, 1),
        "qk_norm": "rms_norm",
    }
    return diffusers.StableDiffusion3Pipeline(
        transformer=denoiser("SD3Transformer2DModel", **transformer),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=vae(shift_factor=0.0609, scaling_factor=1.5305, **PLAIN_VAE),
        text_encoder=original.unprojected(
            clip(projected=True, **WIDE | {"hidden_size": 128, "num_attention_heads": 2, "projection_dim": 128})
        ),
        tokenizer=clip_tokenizer(POSITIONS),
        text_encoder_2=clip(projected=True, hidden_act="gelu", **WIDE | {"projection_dim": 20}),
        tokenizer_2=clip_tokenizer(POSITIONS, pad_token="!"),
        text_encoder_3=t5(d_model=200),
        tokenizer_3=t5_tokenizer(),
    )


def flux() -> Any:
    transformer = {
        "patch_size": 1,
        "in_channels": 16,
        "num_layers": 2,
        "num_single_layers": 2,
        "attention_head_dim": 32,
        "num_attention_heads": 1,
        "joint_attention_dim": 12,
        "pooled_projection_dim": 12,
        "axes_dims_rope": (4, 14, 14),
        "guidance_embeds": True,
    }
    shift = {"use_dynamic_shifting": True, "shift": 3.0, "base_shift": 0.5, "max_shift": 1.15}
    return diffusers.FluxPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**shift),
        vae=vae(shift_factor=0.1159, scaling_factor=0.3611, **PLAIN_VAE),
        text_encoder=clip(),
        tokenizer=clip_tokenizer(POSITIONS),
        text_encoder_2=t5(),
        tokenizer_2=t5_tokenizer(),
        transformer=denoiser("FluxTransformer2DModel", **transformer),
    )


def z_image_wide() -> Any:
    pipeline = z_image.build()
    config = {**pipeline.transformer.config, "dim": 32, "n_heads": 1, "n_kv_heads": 1, "axes_dims": [8, 12, 12]}
    pipeline.transformer = denoiser(
        "ZImageTransformer2DModel", **{k: v for k, v in config.items() if not k.startswith("_")}
    )
    return pipeline


def qwen_image_wide() -> Any:
    pipeline = qwen_image()
    config = {
        **pipeline.transformer.config,
        "attention_head_dim": 32,
        "num_attention_heads": 1,
        "axes_dims_rope": (4, 14, 14),
    }
    config = {k: v for k, v in config.items() if not k.startswith("_")}
    config["out_channels"] = pipeline.transformer.config.out_channels
    pipeline.transformer = denoiser("QwenImageTransformer2DModel", **config)
    shift = {"base_shift": 0.5, "max_shift": 0.9, "max_image_seq_len": 8192, "shift_terminal": 0.02}
    pipeline.scheduler = diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, **shift)
    return pipeline


FLOW = "FlowMatchEulerDiscreteScheduler"


def cases() -> list[SingleFileCase]:
    def case(path: str, build: Any, run: Run, write: Any, **more: Any) -> SingleFileCase:
        return SingleFileCase(f"text-to-image/{path}-single-file", build, (run,), write=write, **more)

    few = {**SIZE, "num_inference_steps": 4}
    flow = {**few, "max_sequence_length": 9}
    second = {"clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1, "prediction_type": "v_prediction"}
    first = {"given": STABLE_DIFFUSION}
    shift = {"use_dynamic_shifting": True, "shift": 3.0, "base_shift": 0.5, "max_shift": 1.15}
    qwen = {
        "use_dynamic_shifting": True,
        "base_shift": 0.5,
        "max_shift": 0.9,
        "max_image_seq_len": 8192,
        "shift_terminal": 0.02,
    }
    words = {**few, "max_sequence_length": 40, "guidance_scale": 0.0}
    return [
        case(
            "stable-diffusion",
            stable_diffusion,
            Run("pndm", "PNDMScheduler", PNDM, options=few),
            original.version_1,
            **first,
        ),
        case(
            "stable-diffusion-2",
            stable_diffusion_2,
            Run("ddim", "DDIMScheduler", second, options=few),
            original.version_2,
            **first,
        ),
        case(
            "stable-diffusion-2-base",
            partial(stable_diffusion_2, "epsilon"),
            Run("noise", "DDIMScheduler", second | {"prediction_type": "epsilon"}, options=few),
            original.version_2,
            beside=True,
            **first,
        ),
        case(
            "stable-diffusion-xl",
            stable_diffusion_xl,
            Run("euler", "EulerDiscreteScheduler", {"timestep_spacing": "leading", "steps_offset": 1}, options=few),
            original.xl,
            **first,
        ),
        case(
            "stable-diffusion-3",
            stable_diffusion_3,
            Run("shift", FLOW, {"shift": 3.0}, options=flow),
            original.version_3,
        ),
        case("flux", flux, Run("dev", FLOW, shift, options=flow), original.flux, latents=unpacked),
        case("z-image", z_image_wide, Run("turbo", FLOW, {"shift": 3.0}, options=words), original.z_image),
        case(
            "qwen-image",
            qwen_image_wide,
            Run("plain", FLOW, qwen, options={**few, "max_sequence_length": 40, "true_cfg_scale": 1.0}),
            original.qwen_image,
            latents=unpacked_fours,
        ),
    ]
