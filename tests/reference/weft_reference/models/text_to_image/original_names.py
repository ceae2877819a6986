"""Today's tensors under the names of the original code, as that code is laid out, and the reference's own reading."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusers.loaders import single_file_model, single_file_utils
from safetensors.numpy import load

from weft_reference.diffusion import diffusers
from weft_reference.inputs import floats

Tensors = dict[str, torch.Tensor]
RESNET = {
    "norm1": "in_layers.0",
    "conv1": "in_layers.2",
    "time_emb_proj": "emb_layers.1",
    "norm2": "out_layers.0",
    "conv2": "out_layers.3",
    "conv_shortcut": "skip_connection",
}
EMBEDDERS = {
    "time_embedding.linear_1": "time_embed.0",
    "time_embedding.linear_2": "time_embed.2",
    "add_embedding.linear_1": "label_emb.0.0",
    "add_embedding.linear_2": "label_emb.0.2",
    "conv_in": "input_blocks.0.0",
    "conv_norm_out": "out.0",
    "conv_out": "out.2",
}


def prefixed(prefix: str, tensors: Mapping[str, torch.Tensor]) -> Tensors:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def unet(model: Any) -> Tensors:
    span = model.config.layers_per_block + 1
    attends = [kind.startswith("CrossAttn") for kind in model.config.up_block_types]
    made = {}
    for name, tensor in model.state_dict().items():
        module, kind = name.rsplit(".", 1)
        pieces = module.split(".")
        if module in EMBEDDERS:
            made[f"{EMBEDDERS[module]}.{kind}"] = tensor
            continue
        if pieces[0] == "mid_block":
            place = "1" if pieces[1] == "attentions" else str(2 * int(pieces[2]))
            stem, rest = f"middle_block.{place}", pieces[3:]
            sort = pieces[1]
        else:
            way, block, sort, layer, *rest = pieces
            down = way == "down_blocks"
            number = (
                int(block) * span + int(down) + (span - 1 if sort in ("downsamplers", "upsamplers") else int(layer))
            )
            place = {"resnets": 0, "attentions": 1, "downsamplers": 0, "upsamplers": 1 + attends[int(block)]}[sort]
            stem = f"{'input' if down else 'output'}_blocks.{number}.{place}"
        if sort == "resnets":
            rest = [RESNET[rest[0]]]
        if sort == "downsamplers":
            rest = ["op"]
        made[".".join([stem, *rest, kind])] = tensor
    return made


def vae(model: Any) -> Tensors:
    last = len(model.config.block_out_channels) - 1
    made = {}
    for name, tensor in model.state_dict().items():
        name = name.replace("conv_norm_out", "norm_out").replace("conv_shortcut", "nin_shortcut")
        name = name.replace("mid_block.resnets.0", "mid.block_1").replace("mid_block.resnets.1", "mid.block_2")
        name = re.sub(r"down_blocks\.(\d+)\.resnets", r"down.\1.block", name)
        name = re.sub(r"down_blocks\.(\d+)\.downsamplers\.0", r"down.\1.downsample", name)
        name = re.sub(r"up_blocks\.(\d+)\.resnets", lambda found: f"up.{last - int(found[1])}.block", name)
        name = re.sub(r"up_blocks\.(\d+)\.upsamplers\.0", lambda found: f"up.{last - int(found[1])}.upsample", name)
        if "mid_block.attentions.0." in name:
            for today, old in {
                "group_norm": "norm",
                "to_q": "q",
                "to_k": "k",
                "to_v": "v",
                "to_out.0": "proj_out",
            }.items():
                name = name.replace(f"mid_block.attentions.0.{today}.", f"mid.attn_1.{old}.")
            tensor = tensor[:, :, None, None] if tensor.ndim == 2 else tensor
        made[name] = tensor
    return made


def clip(model: Any) -> Tensors:
    """Under the names of older releases of `transformers`, with what those stored besides."""
    made = {f"text_model.{name.removeprefix('text_model.')}": tensor for name, tensor in model.state_dict().items()}
    made = {
        name.removeprefix("text_model.") if "text_projection" in name else name: tensor for name, tensor in made.items()
    }
    return made | {"text_model.embeddings.position_ids": torch.arange(model.config.max_position_embeddings)[None]}


def open_clip(model: Any, another: bool) -> Tensors:
    """OpenCLIP's; `another` layer, and a projection, where the reference reads neither."""
    state = {name.removeprefix("text_model."): tensor for name, tensor in model.state_dict().items()}
    made = {
        "positional_embedding": state["embeddings.position_embedding.weight"],
        "token_embedding.weight": state["embeddings.token_embedding.weight"],
        "ln_final.weight": state["final_layer_norm.weight"],
        "ln_final.bias": state["final_layer_norm.bias"],
        "logit_scale": torch.tensor(4.6),
    }
    layers = model.config.num_hidden_layers
    for layer in range(layers + another):
        today = f"encoder.layers.{min(layer, layers - 1)}."
        own = f"transformer.resblocks.{layer}."
        for kind in ("weight", "bias"):
            parts = [state[f"{today}self_attn.{part}_proj.{kind}"] for part in "qkv"]
            made[f"{own}attn.in_proj_{kind}"] = torch.cat(parts)
            names = {"self_attn.out_proj": "attn.out_proj", "layer_norm1": "ln_1", "layer_norm2": "ln_2"}
            for name, old in {**names, "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj"}.items():
                made[f"{own}{old}.{kind}"] = state[f"{today}{name}.{kind}"]
    width = model.config.hidden_size
    projection = (
        torch.from_numpy(floats("projection", (width, width))) if another else state["text_projection.weight"].T
    )
    return made | {"text_projection": projection}


def unprojected(model: Any) -> Any:
    """Stable Diffusion 3's first text encoder, whose projection the reference takes for the identity."""
    model.text_projection.weight.data = torch.eye(model.config.hidden_size)
    return model


def first_parts(pipeline: Any) -> dict[str, Tensors]:
    others = {"model_ema.decay": torch.tensor(0.9999), "alphas_cumprod": torch.linspace(1.0, 0.0, 10)}
    return {
        "unet": prefixed("model.diffusion_model.", unet(pipeline.unet)) | others,
        "vae": prefixed("first_stage_model.", vae(pipeline.vae)),
    }


def version_1(pipeline: Any) -> dict[str, Tensors]:
    text = prefixed("cond_stage_model.transformer.", clip(pipeline.text_encoder))
    return {"text_encoder": text} | first_parts(pipeline)


def version_2(pipeline: Any) -> dict[str, Tensors]:
    text = prefixed("cond_stage_model.model.", open_clip(pipeline.text_encoder, True))
    return {"text_encoder": text} | first_parts(pipeline)


def xl(pipeline: Any) -> dict[str, Tensors]:
    text = prefixed("conditioner.embedders.0.transformer.", clip(pipeline.text_encoder))
    second = prefixed("conditioner.embedders.1.model.", open_clip(pipeline.text_encoder_2, False))
    return {"text_encoder": text, "text_encoder_2": second} | first_parts(pipeline)


def swapped(tensor: torch.Tensor) -> torch.Tensor:
    scale, shift = tensor.chunk(2)
    return torch.cat([shift, scale])


def renamed(
    state: Tensors, names: Mapping[str, str], cut: Mapping[str, tuple[str, ...]], turned: tuple[str, ...]
) -> Tensors:
    """By ends of stems, longest first: renamed, joined with others as rows, or with halves that change places."""
    made: Tensors = {}
    done: set[str] = set()
    for name in state:
        if name in done:
            continue
        for joined, parts in cut.items():
            found = re.fullmatch(parts[0].replace("*", r"(\d+)"), name.rsplit(".", 1)[0])
            if found:
                kind = name.rsplit(".", 1)[1]
                own = [f"{part.replace('*', found[1])}.{kind}" for part in parts]
                done |= set(own)
                made[f"{joined.replace('*', found[1])}.{kind}"] = torch.cat([state[one] for one in own])
                break
        else:
            if any(
                re.fullmatch(part.replace("*", r"\d+"), name.rsplit(".", 1)[0])
                for parts in cut.values()
                for part in parts
            ):
                continue
            for today, old in names.items():
                found = re.fullmatch(today.replace("*", r"(\d+)") + r"(\.weight|\.bias|)", name)
                if found:
                    numbers, kind = found.groups()[:-1], found.groups()[-1]
                    kind = "" if old.endswith(".scale") or not kind else kind
                    stem = old.replace("*", numbers[0]) if numbers else old
                    made[f"{stem}{kind}"] = (
                        swapped(state[name]) if any(re.fullmatch(t, today) for t in turned) else state[name]
                    )
                    break
            else:
                raise ValueError(f"{name} has no name in the original code")
    return made


def flux_transformer(model: Any) -> Tensors:
    block, single = "transformer_blocks.*", "single_transformer_blocks.*"
    names = {
        "time_text_embed.timestep_embedder.linear_1": "time_in.in_layer",
        "time_text_embed.timestep_embedder.linear_2": "time_in.out_layer",
        "time_text_embed.text_embedder.linear_1": "vector_in.in_layer",
        "time_text_embed.text_embedder.linear_2": "vector_in.out_layer",
        "time_text_embed.guidance_embedder.linear_1": "guidance_in.in_layer",
        "time_text_embed.guidance_embedder.linear_2": "guidance_in.out_layer",
        "context_embedder": "txt_in",
        "x_embedder": "img_in",
        "proj_out": "final_layer.linear",
        "norm_out.linear": "final_layer.adaLN_modulation.1",
        f"{single}.norm.linear": "single_blocks.*.modulation.lin",
        f"{single}.attn.norm_q": "single_blocks.*.norm.query_norm.scale",
        f"{single}.attn.norm_k": "single_blocks.*.norm.key_norm.scale",
        f"{single}.proj_out": "single_blocks.*.linear2",
    }
    for stream, context, added, out in (("img", "", "", "to_out.0"), ("txt", "_context", "added_", "to_add_out")):
        own = f"double_blocks.*.{stream}"
        names |= {
            f"{block}.norm1{context}.linear": f"{own}_mod.lin",
            f"{block}.attn.norm_{added}q": f"{own}_attn.norm.query_norm.scale",
            f"{block}.attn.norm_{added}k": f"{own}_attn.norm.key_norm.scale",
            f"{block}.ff{context}.net.0.proj": f"{own}_mlp.0",
            f"{block}.ff{context}.net.2": f"{own}_mlp.2",
            f"{block}.attn.{out}": f"{own}_attn.proj",
        }
    cut = {
        "double_blocks.*.img_attn.qkv": tuple(f"{block}.attn.to_{part}" for part in "qkv"),
        "double_blocks.*.txt_attn.qkv": tuple(f"{block}.attn.add_{part}_proj" for part in "qkv"),
        "single_blocks.*.linear1": (*(f"{single}.attn.to_{part}" for part in "qkv"), f"{single}.proj_mlp"),
    }
    return renamed(model.state_dict(), names, cut, ("norm_out.linear",))


def flux(pipeline: Any) -> dict[str, Tensors]:
    return {
        "transformer": prefixed("model.diffusion_model.", flux_transformer(pipeline.transformer)),
        "vae": prefixed("vae.", vae(pipeline.vae)),
    }


def sd3_transformer(model: Any) -> Tensors:
    block = "transformer_blocks.*"
    names = {
        "pos_embed.pos_embed": "pos_embed",
        "pos_embed.proj": "x_embedder.proj",
        "time_text_embed.timestep_embedder.linear_1": "t_embedder.mlp.0",
        "time_text_embed.timestep_embedder.linear_2": "t_embedder.mlp.2",
        "time_text_embed.text_embedder.linear_1": "y_embedder.mlp.0",
        "time_text_embed.text_embedder.linear_2": "y_embedder.mlp.2",
        "context_embedder": "context_embedder",
        "proj_out": "final_layer.linear",
        "norm_out.linear": "final_layer.adaLN_modulation.1",
        f"{block}.attn.to_out.0": "joint_blocks.*.x_block.attn.proj",
        f"{block}.attn2.to_out.0": "joint_blocks.*.x_block.attn2.proj",
        f"{block}.attn2.norm_q": "joint_blocks.*.x_block.attn2.ln_q",
        f"{block}.attn2.norm_k": "joint_blocks.*.x_block.attn2.ln_k",
        f"{block}.attn.to_add_out": "joint_blocks.*.context_block.attn.proj",
    }
    for stream, context, added in (("x", "", ""), ("context", "_context", "added_")):
        own = f"joint_blocks.*.{stream}_block"
        names |= {
            f"{block}.norm1{context}.linear": f"{own}.adaLN_modulation.1",
            f"{block}.attn.norm_{added}q": f"{own}.attn.ln_q",
            f"{block}.attn.norm_{added}k": f"{own}.attn.ln_k",
            f"{block}.ff{context}.net.0.proj": f"{own}.mlp.fc1",
            f"{block}.ff{context}.net.2": f"{own}.mlp.fc2",
        }
    cut = {
        "joint_blocks.*.x_block.attn.qkv": tuple(f"{block}.attn.to_{part}" for part in "qkv"),
        "joint_blocks.*.x_block.attn2.qkv": tuple(f"{block}.attn2.to_{part}" for part in "qkv"),
        "joint_blocks.*.context_block.attn.qkv": tuple(f"{block}.attn.add_{part}_proj" for part in "qkv"),
    }
    made = renamed(model.state_dict(), names, cut, ("norm_out.linear",))
    # Texts have a scale and a shift alone in the last block, in the other order there, too.
    last = f"joint_blocks.{model.config.num_layers - 1}.context_block.adaLN_modulation.1"
    return made | {f"{last}.{kind}": swapped(made[f"{last}.{kind}"]) for kind in ("weight", "bias")}


def version_3(pipeline: Any) -> dict[str, Tensors]:
    return {
        "transformer": prefixed("model.diffusion_model.", sd3_transformer(pipeline.transformer)),
        "vae": prefixed("first_stage_model.", vae(pipeline.vae)),
        "text_encoder": prefixed("text_encoders.clip_l.transformer.", clip(pipeline.text_encoder)),
        "text_encoder_2": prefixed("text_encoders.clip_g.transformer.", clip(pipeline.text_encoder_2)),
        "text_encoder_3": prefixed(
            "text_encoders.t5xxl.transformer.",
            {name: tensor.clone() for name, tensor in pipeline.text_encoder_3.state_dict().items()},
        ),
    }


def z_image(pipeline: Any) -> dict[str, Tensors]:
    """The transformer alone, without anything before its names."""
    state = pipeline.transformer.state_dict()
    made: Tensors = {}
    for name, tensor in state.items():
        if ".to_k." in name or ".to_v." in name:
            continue
        if ".to_q." in name:
            tensor = torch.cat([state[name.replace("to_q", f"to_{part}")] for part in "qkv"])
        name = name.replace("attention.to_q", "attention.qkv").replace("attention.to_out.0", "attention.out")
        name = name.replace("attention.norm_q", "attention.q_norm").replace("attention.norm_k", "attention.k_norm")
        made[name.replace("all_final_layer.2-1", "final_layer").replace("all_x_embedder.2-1", "x_embedder")] = tensor
    return {"transformer": made}


def qwen_image(pipeline: Any) -> dict[str, Tensors]:
    return {"transformer": prefixed("model.diffusion_model.", pipeline.transformer.state_dict())}


def opened(pipeline: Any, file: Path, folder: Path) -> Any:
    """What the reference makes of the file, with the configurations of the folder."""
    flux_width(pipeline)
    if isinstance(pipeline, diffusers.QwenImagePipeline):
        # The reference maps the names of this one by the caller's hand.
        keys = {
            name.removeprefix("model.diffusion_model."): tensor
            for name, tensor in qwen_image(pipeline)["transformer"].items()
        }
        pipeline.transformer.load_state_dict(keys)
        return pipeline
    if isinstance(pipeline, (diffusers.FluxPipeline, diffusers.ZImagePipeline)):
        named = {"config": str(folder), "subfolder": "transformer", "local_files_only": True}
        transformer = type(pipeline.transformer).from_single_file(str(file), **named)
        return type(pipeline)(**{**pipeline.components, "transformer": transformer.float().eval()})
    extra = {"safety_checker": None, "feature_extractor": None} if "safety_checker" in pipeline.components else {}
    read = type(pipeline).from_single_file(str(file), config=str(folder), local_files_only=True, **extra)
    for component in read.components.values():
        # It leaves T5's dropout on.
        if isinstance(component, torch.nn.Module):
            component.float().eval()
    return read


def flux_width(pipeline: Any) -> None:
    """Gives the reference's reading of FLUX.1 the width of this one, where it has that of the published model alone."""
    if isinstance(pipeline, diffusers.FluxPipeline):
        name = "convert_flux_transformer_checkpoint_to_diffusers"
        text = inspect.getsource(getattr(single_file_utils, name))
        width = pipeline.transformer.config.num_attention_heads * pipeline.transformer.config.attention_head_dim
        scope = dict(vars(single_file_utils))
        exec(text.replace("inner_dim = 3072", f"inner_dim = {width}"), scope)
        known = single_file_model.SINGLE_FILE_LOADABLE_CLASSES["FluxTransformer2DModel"]
        known["checkpoint_mapping_fn"] = scope[name]


def expect_same(made: bytes, want: bytes) -> None:
    """That a run of the pipeline that was read from the file is one of that which was written into it."""
    made_tensors, wanted = load(made), load(want)
    for name, tensor in wanted.items():
        np.testing.assert_allclose(
            made_tensors[name].astype(np.float64), tensor.astype(np.float64), rtol=1e-5, atol=1e-5
        )
