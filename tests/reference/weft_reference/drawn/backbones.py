"""Backbones, text detectors and recognisers, and poses drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference.cases import Case
from weft_reference.drawn.common import EPSILONS, Changes, store
from weft_reference.drawn.dense import neck
from weft_reference.drawn.detectors import images, transformer
from weft_reference.drawn.pictures import pixels
from weft_reference.inputs import floats
from weft_reference.models.pp_ocr import KIN as OCR
from weft_reference.models.pp_ocr import RECOGNISERS, WINDOWS, calmed
from weft_reference.models.small_backbones import KIN

ACTS = ("relu", "gelu", "silu", "hardswish")


def case(rng: Random, path: str, model_class: str, config: PreTrainedConfig, inputs: Changes) -> Case:
    return Case(path, model_class, config, inputs, "Drawn at random.", store(rng))


def blocks(rng: Random, strides: list[Any], step: int = 2) -> list[list[list[Any]]]:
    """Stages of depthwise separable convolutions, one of which has this stride."""
    width, made = step * rng.randint(2, 5), []
    for stride in strides:
        stage = []
        for index in range(rng.randint(1, 2)):
            out = width if index else step * rng.randint(2, 6)
            stage.append([rng.choice((3, 5)), width, out, 1 if index else stride, rng.random() < 0.4])
            width = out
        made.append(stage)
    return made


def lcnet(model: str, rng: Random, strides: list[Any], **changes: Any) -> PreTrainedConfig:
    stages = blocks(rng, strides, 4)
    first = stages[0][0][1]
    made: Changes = {"block_configs": stages, "reduction": rng.choice((1, 2, 4)), "hidden_act": rng.choice(ACTS)}
    if model == "pp_lcnet_v4":
        made |= {"stem_channels": [3, 2 * rng.randint(1, 4), first], "use_learnable_affine_block": rng.random() < 0.5}
    else:
        made |= {"stem_channels": first, "divisor": rng.choice((2, 4)), "scale": rng.choice((0.75, 1.0, 1.5))}
    if model == "pp_lcnet_v3":
        made |= {"conv_symmetric_num": rng.randint(1, 3)}
    return getattr(transformers, f"{KIN[model]}Config")(**(made | changes))


def hgnet(rng: Random, **changes: Any) -> PreTrainedConfig:
    sizes = [2 * rng.randint(2, 6) for _ in range(5)]
    return transformers.HGNetV2Config(
        stem_channels=[3, 2 * rng.randint(1, 4), sizes[0]],
        stage_in_channels=sizes[:-1],
        stage_mid_channels=[rng.randint(3, 8) for _ in range(4)],
        stage_out_channels=sizes[1:],
        stage_num_blocks=[rng.randint(1, 2) for _ in range(4)],
        stage_light_block=[rng.random() < 0.5 for _ in range(4)],
        stage_kernel_size=[rng.choice((3, 5)) for _ in range(4)],
        stage_numb_of_layers=[rng.randint(1, 3) for _ in range(4)],
        depths=[1] * 4,
        hidden_sizes=sizes[1:],
        embedding_size=sizes[0],
        **changes,
    )


def backbones(model: str, rng: Random, path: str) -> Case:
    match model:
        case "pp_lcnet" | "pp_lcnet_v3" | "pp_lcnet_v4":
            count = 4 if model == "pp_lcnet_v4" else 5
            strides = [rng.choice((1, 2, [2, 1])) for _ in range(count)]
            config = lcnet(model, rng, strides, **({"stem_type": rng.choice(("large", "small"))} if count == 4 else {}))
        case "textnet":
            stages, sizes = [], [rng.randint(2, 9) for _ in range(5)]
            for _ in range(4):
                stages.append([[rng.choice((1, 3, 5)), rng.choice((1, 3))] for _ in range(rng.randint(1, 3))])
            strides = [[rng.choice((1, 2)) for _ in stage] for stage in stages]
            made = {"conv_layer_kernel_sizes": stages, "conv_layer_strides": strides, "batch_norm_eps": rng.choice(EPSILONS)}
            config = transformers.TextNetConfig(stem_out_channels=sizes[0], hidden_sizes=sizes, num_labels=rng.randint(1, 6), **made)
        case _:
            sizes = [4 * rng.randint(1, 5) for _ in range(4)]
            layers = {"layer_type": rng.choice(("basic", "bottleneck")), "downsample_in_bottleneck": rng.random() < 0.5}
            config = transformers.RTDetrResNetConfig(embedding_size=sizes[0], hidden_sizes=sizes, depths=[rng.randint(1, 2) for _ in sizes], **layers)
    heads = {"textnet": ("Model", "ForImageClassification", "Backbone"), "pp_lcnet": ("ForImageClassification", "Backbone")}
    inputs = pixels(rng, path, 3, rng.randint(48, 90), rng.randint(48, 90))
    return case(rng, path, KIN[model] + rng.choice(heads.get(model, ("Backbone",))), config, inputs)


def mlcd(rng: Random, path: str) -> Case:
    heads, patch = rng.choice((1, 2, 3)), rng.randint(2, 5)
    sizes = {"hidden_size": heads * 4 * rng.randint(1, 4), "intermediate_size": rng.randint(8, 50), "num_hidden_layers": rng.randint(1, 4)}
    config = transformers.MLCDVisionConfig(**sizes, num_attention_heads=heads, patch_size=patch, image_size=4 * patch, layer_norm_eps=rng.choice(EPSILONS))
    return case(rng, path, "MLCDVisionModel", config, pixels(rng, path, 3, patch * rng.randint(1, 6), patch * rng.randint(1, 6)))


def hiera(rng: Random, path: str) -> Case:
    depth, stride = rng.randint(2, 4), rng.randint(2, 4)
    unit = 2 ** (depth - 1)
    pools = rng.randint(1, depth - 1)
    within = rng.randint(1, pools)
    config = transformers.HieraConfig(
        embed_dim=4 * rng.randint(1, 3),
        image_size=[stride * unit * rng.randint(1, 3) for _ in range(2)],
        patch_size=[2 * stride - 1] * 2,
        patch_stride=[stride] * 2,
        patch_padding=[stride - 1] * 2,
        mlp_ratio=rng.choice((1.5, 2.0)),
        depths=[rng.randint(1, 3) for _ in range(depth)],
        num_heads=[rng.choice((1, 2, 4)) for _ in range(depth)],
        num_query_pool=pools,
        masked_unit_size=[unit] * 2,
        masked_unit_attention=[stage < within for stage in range(depth)],
        layer_norm_eps=rng.choice(EPSILONS),
        num_labels=rng.randint(1, 6),
    )
    return case(rng, path, "Hiera" + rng.choice(("Model", "ForImageClassification")), config, pixels(rng, path, 3, *config.image_size))


def vitpose(head: str, rng: Random, path: str) -> Case:
    heads, patch, layers = rng.choice((1, 2, 3)), 2 * rng.randint(3, 6), rng.randint(2, 4)
    made = transformers.VitPoseBackboneConfig(
        image_size=[patch * rng.randint(1, 4), patch * rng.randint(1, 4)],
        patch_size=[patch] * 2,
        hidden_size=heads * 4 * rng.randint(1, 4),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        mlp_ratio=rng.randint(1, 4),
        qkv_bias=rng.random() < 0.5,
        layer_norm_eps=rng.choice(EPSILONS),
        out_indices=[rng.randint(1, layers)],
    )
    inputs = pixels(rng, path, 3, *made.image_size)
    if head == "Backbone":
        return case(rng, path, "VitPoseBackbone", made, inputs)
    decoder = {"use_simple_decoder": rng.random() < 0.5, "scale_factor": rng.randint(2, 4), "num_labels": rng.randint(2, 9)}
    return case(rng, path, "VitPoseForPoseEstimation", transformers.VitPoseConfig(backbone_config=made, **decoder), inputs)


def prompt_depth(rng: Random, path: str) -> Case:
    count, heads, patch = rng.randint(2, 4), rng.choice((1, 2)), rng.randint(3, 7)
    vit = {"hidden_size": heads * 4 * rng.randint(1, 3), "num_attention_heads": heads, "num_hidden_layers": count, "mlp_ratio": 2}
    backbone = transformers.Dinov2Config(**vit, image_size=4 * patch, patch_size=patch, out_indices=list(range(1, count + 1)), reshape_hidden_states=False)
    sizes = {"patch_size": patch, "reassemble_hidden_size": vit["hidden_size"], "head_hidden_size": rng.randint(2, 9)}
    config = transformers.PromptDepthAnythingConfig(backbone_config=backbone, **sizes, **neck(rng, count), depth_estimation_type=rng.choice(("metric", "relative")))
    inputs = pixels(rng, path, 3, patch * rng.randint(2, 6), patch * rng.randint(2, 6))
    if rng.random() < 0.7:
        shape = (len(inputs["pixel_values"]), 1, rng.randint(2, 40), rng.randint(2, 40))
        inputs["prompt_depth"] = floats(f"{path}.depth", shape, 0.3, 5.0)
    return case(rng, path, "PromptDepthAnythingForDepthEstimation", config, inputs)


def vjepa2(rng: Random, path: str) -> Case:
    heads, patch, tubelet = rng.choice((1, 2, 3)), rng.randint(2, 5), rng.randint(1, 2)
    config = transformers.VJEPA2Config(
        patch_size=patch,
        crop_size=patch * rng.randint(1, 4),
        frames_per_clip=tubelet * rng.randint(1, 3),
        tubelet_size=tubelet,
        hidden_size=heads * 2 * rng.randint(3, 10),
        num_attention_heads=heads,
        num_hidden_layers=rng.randint(1, 3),
        mlp_ratio=rng.choice((1.5, 2.0)),
        qkv_bias=rng.random() < 0.5,
        layer_norm_eps=rng.choice(EPSILONS),
        num_pooler_layers=rng.randint(0, 2),
        pred_hidden_size=2 * 2 * rng.randint(3, 8),
        pred_num_attention_heads=2,
        pred_num_hidden_layers=rng.randint(1, 3),
        pred_num_mask_tokens=rng.randint(1, 4),
        num_labels=rng.randint(1, 6),
    )
    shape = (rng.randint(1, 3), config.frames_per_clip, 3, config.crop_size, config.crop_size)
    head = rng.choice(("Model", "ForVideoClassification"))
    return case(rng, path, f"VJEPA2{head}", config, {"pixel_values_videos": floats(f"{path}.video", shape, -2.0, 2.0)})


def ocr(model: str, rng: Random, path: str) -> Case:
    stages = ["stage1", "stage2", "stage3", "stage4"]
    lines = model in RECOGNISERS
    if model == "pp_ocrv5_mobile_det":
        backbone = lcnet("pp_lcnet_v3", rng, [1, 2, 2, 2, 2], scale=1.0, out_features=["stage2", "stage3", "stage4", "stage5"])
    elif model == "pp_ocrv5_mobile_rec":
        backbone = lcnet("pp_lcnet_v3", rng, [1, [2, 1], [2, 1], [1, 2], [2, 1]])
    elif model == "pp_ocrv5_server_det":
        backbone = hgnet(rng, out_features=stages)
    elif model == "pp_ocrv5_server_rec":
        strides = [[2, 1], [1, 2], [2, 1], [2, 1]]
        backbone = hgnet(rng, stem_strides=[2, 1, 1, 1, 1], stage_downsample=[True] * 4, stage_downsample_strides=strides)
    elif lines:
        backbone = lcnet("pp_lcnet_v4", rng, [1, 1, [2, 1], [2, 1]])
    else:
        backbone = lcnet("pp_lcnet_v4", rng, [1, 2, 2, 2], out_features=stages)
    made: Changes = {"backbone_config": backbone}
    if lines:
        heads = rng.choice((1, 2, 4))
        made |= {"hidden_size": heads * rng.randint(3, 8), "head_out_channels": rng.randint(3, 20)}
        if model != "pp_ocrv6_tiny_rec":
            layers = {"num_attention_heads": heads, "depth": rng.randint(1, 3), "mlp_ratio": rng.choice((1.5, 2.0))}
            made |= layers | {"qkv_bias": rng.random() < 0.5, "conv_kernel_size": [1, rng.choice((3, 5, 7))], "layer_norm_eps": rng.choice(EPSILONS)}
        size = (48, 4 * rng.randint(6, 30))
    else:
        made |= {"neck_out_channels": 8 * rng.randint(1, 4), "interpolate_mode": rng.choice(("nearest", "bilinear"))}
        size = (32 * rng.randint(1, 3), 32 * rng.randint(1, 3))
        if model in ("pp_ocrv5_mobile_det", "pp_ocrv6_small_det"):
            widths = [stage[-1][2] for stage in backbone.block_configs]
            own = [rng.randint(2, 9) for _ in stages] if model == "pp_ocrv5_mobile_det" else widths
            made |= {"reduction": rng.choice((1, 2)), "layer_list_out_channels": own}
        else:
            layout = WINDOWS | {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0]}
            made |= {"intraclass_block_config": layout, "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2]}
    config = getattr(transformers, f"{OCR[model]}Config")(**made)
    head = "ForTextRecognition" if lines else "ForObjectDetection"
    return Case(path, OCR[model] + head, config, pixels(rng, path, 3, *size), "Drawn at random.", store(rng) if lines else calmed)


def d_fine(rng: Random, path: str) -> Case:
    made = transformer(rng) | {"num_denoising": rng.choice((0, 3)), "tie_word_embeddings": False}
    backbone = hgnet(rng, out_features=["stage2", "stage3", "stage4"])
    heads = made["encoder_attention_heads"]
    width = made["d_model"] if rng.random() < 0.5 else 4 * heads * rng.randint(1, 3)
    config = transformers.DFineConfig(
        backbone_config=backbone,
        **made,
        encoder_hidden_dim=width,
        decoder_in_channels=[width] * 3,
        encoder_in_channels=backbone.stage_out_channels[1:],
        decoder_n_points=rng.choice((2, [2, 3, 1])),
        max_num_bins=2 * rng.randint(4, 9),
        lqe_hidden_dim=rng.randint(3, 9),
        depth_mult=rng.choice((0.34, 0.67, 1.0)),
        hidden_expansion=rng.choice((0.5, 1.0)),
        decoder_method=rng.choice(("default", "discrete")),
    )
    return case(rng, path, "DFineForObjectDetection", config, images(rng, path, 32, 64, masked=False))


DRAWN = {
    **{model: partial(backbones, model) for model in KIN if model != "mlcd"},
    "mlcd": mlcd,
    "hiera": hiera,
    "vitpose_backbone": partial(vitpose, "Backbone"),
    "vitpose": partial(vitpose, "ForPoseEstimation"),
    "prompt_depth_anything": prompt_depth,
    "vjepa2": vjepa2,
    **{model: partial(ocr, model) for model in OCR},
    "d_fine": d_fine,
}
