"""ViT-MAE, RADIO, Swin2SR, MaskFormer's Swin, UVDoc, MGP-STR, ImageGPT, CHMv2 and Sapiens2 drawn at random."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference.cases import Case
from weft_reference.drawn.common import EPSILONS, Changes, store
from weft_reference.inputs import floats, integers

ACTS = ("relu", "gelu", "silu", "quick_gelu")


def case(rng: Random, path: str, model_class: str, config: PreTrainedConfig, inputs: Changes) -> Case:
    return Case(path, model_class, config, inputs, "Drawn at random.", store(rng))


def pixels(rng: Random, path: str, channels: int, height: int, width: int) -> Changes:
    return {"pixel_values": floats(path, (rng.randint(1, 3), channels, height, width), -2.0, 2.0)}


def vit(rng: Random) -> Changes:
    heads = rng.randint(1, 4)
    return {
        "hidden_size": 4 * heads * rng.randint(1, 4),
        "num_hidden_layers": rng.randint(1, 4),
        "num_attention_heads": heads,
        "patch_size": rng.randint(2, 6),
        "num_channels": rng.choice((1, 3)),
        "layer_norm_eps": rng.choice(EPSILONS),
        "qkv_bias": rng.random() < 0.5,
    }


def vit_mae(rng: Random, path: str) -> Case:
    made, heads, side = vit(rng), rng.randint(1, 4), rng.randint(3, 6)
    sizes = {"decoder_hidden_size": 4 * heads * rng.randint(1, 3), "decoder_num_attention_heads": heads, "decoder_num_hidden_layers": rng.randint(1, 3)}
    sizes |= {"intermediate_size": rng.randint(4, 40), "decoder_intermediate_size": rng.randint(4, 40), "mask_ratio": rng.choice((0.25, 0.5, 0.75))}
    config = transformers.ViTMAEConfig(**made, **sizes, image_size=side * made["patch_size"], hidden_act=rng.choice(ACTS))
    inputs = pixels(rng, path, config.num_channels, config.image_size, config.image_size)
    orders = [np.random.default_rng(rng.randint(0, 999)).permutation(side**2) for _ in inputs["pixel_values"]]
    inputs["noise"] = np.stack(orders).astype(np.float32)
    return case(rng, path, f"ViTMAE{rng.choice(('Model', 'ForPreTraining'))}", config, inputs)


def radio(rng: Random, path: str) -> Case:
    made, tokens = vit(rng) | {"num_channels": 3}, rng.randint(1, 4)
    size = made["patch_size"]
    others = {"use_swiglu_ffn": rng.random() < 0.5, "num_registers": rng.randint(0, 4), "hidden_act": rng.choice(ACTS)}
    config = transformers.RadioConfig(
        **made,
        **others,
        mlp_ratio=rng.choice((1.5, 2.0, 4.0)),
        num_cls_tokens=tokens,
        summary_idxs=sorted(rng.sample(range(tokens), rng.randint(1, tokens))),
        max_img_size=size * rng.randint(2, 9),
    )
    return case(rng, path, "RadioModel", config, pixels(rng, path, config.num_channels, size * rng.randint(1, 8), size * rng.randint(1, 8)))


def swin(rng: Random, stages: int) -> Changes:
    window = rng.randint(2, 5)
    return {
        "embed_dim": 12 * rng.randint(1, 3),
        "depths": [rng.randint(1, 3) for _ in range(stages)],
        "num_heads": [rng.choice((1, 2, 3)) for _ in range(stages)],
        "window_size": window,
        "mlp_ratio": rng.choice((1.5, 2.0, 4.0)),
        "qkv_bias": rng.random() < 0.5,
        "hidden_act": rng.choice(ACTS),
        "layer_norm_eps": rng.choice(EPSILONS),
    }


def swin2sr(rng: Random, path: str) -> Case:
    made = swin(rng, rng.randint(1, 3))
    upsampler = rng.choice(("pixelshuffle", "pixelshuffle_aux", "pixelshuffledirect", "nearest+conv", ""))
    upscale = {"nearest+conv": 4, "": 1}.get(upsampler, rng.choice((2, 3, 4)))
    window = made["window_size"]
    convolution = {"resi_connection": rng.choice(("1conv", "3conv")), "img_range": rng.choice((1.0, 255.0))}
    config = transformers.Swin2SRConfig(**made, **convolution, upsampler=upsampler, upscale=upscale, image_size=window * rng.randint(1, 4))
    inputs = pixels(rng, path, 3, window * rng.randint(1, 5), window * rng.randint(1, 5))
    return case(rng, path, "Swin2SRForImageSuperResolution", config, inputs)


def maskformer_swin(rng: Random, path: str) -> Case:
    made, backbone = swin(rng, rng.randint(2, 4)), rng.random() < 0.5
    features = {"out_indices": sorted(rng.sample(range(1, len(made["depths"]) + 1), 2))} if backbone else {}
    config = transformers.MaskFormerSwinConfig(**made, **features, patch_size=rng.randint(1, 4))
    inputs = pixels(rng, path, 3, rng.randint(12, 50), rng.randint(12, 50))
    return case(rng, path, "MaskFormerSwinBackbone" if backbone else "MaskFormerSwinModel", config, inputs)


def uvdoc(rng: Random, path: str) -> Case:
    width, bridges = 2 * rng.randint(2, 6), rng.randint(1, 4)
    first = rng.randint(2, 8)
    stages = [[[first, first, 1, False], [first, first, rng.randint(1, 3), False]], [[first, width, 1, True], [width, width, rng.randint(1, 3), False]]]
    layout = transformers.UVDocBackboneConfig(
        resnet_head=[[3, 4], [4, first]],
        resnet_configs=stages,
        stage_configs=[[[width, rng.randint(1, 6)] for _ in range(rng.randint(1, 3))] for _ in range(bridges)],
        out_features=[f"stage{index + 1}" for index in range(bridges)],
    )
    inner = rng.randint(2, 8)
    sizes: dict[str, Any] = {"bridge_connector": [width, inner], "out_point_positions2D": [[inner, 5], [5, 2]]}
    sizes |= {"padding_mode": rng.choice(("reflect", "zeros", "replicate")), "kernel_size": rng.choice((3, 5))}
    config = transformers.UVDocConfig(backbone_config=layout, **sizes)
    return case(rng, path, "UVDocModel", config, pixels(rng, path, 3, rng.randint(33, 70), rng.randint(33, 70)))


def mgp_str(rng: Random, path: str) -> Case:
    made = vit(rng) | {"patch_size": [rng.randint(2, 5), rng.randint(2, 5)]}
    made["hidden_size"] *= 2
    sizes = {f"num_{kind}_labels": rng.randint(2, 30) for kind in ("character", "bpe", "wordpiece")}
    image = [made["patch_size"][0] * rng.randint(1, 4), made["patch_size"][1] * rng.randint(1, 6)]
    config = transformers.MgpstrConfig(**made, **sizes, image_size=image, max_token_length=rng.randint(2, 9), mlp_ratio=rng.choice((1.5, 4.0)))
    return case(rng, path, "MgpstrForSceneTextRecognition", config, pixels(rng, path, config.num_channels, *image))


def imagegpt(rng: Random, path: str) -> Case:
    heads, size = rng.randint(1, 4), rng.randint(5, 40)
    scales = {"scale_attn_weights": rng.random() < 0.5, "scale_attn_by_inverse_layer_idx": rng.random() < 0.5}
    config = transformers.ImageGPTConfig(
        vocab_size=size,
        n_positions=rng.randint(12, 30),
        n_embd=4 * heads * rng.randint(1, 3),
        n_layer=rng.randint(1, 4),
        n_head=heads,
        activation_function=rng.choice(ACTS),
        num_labels=rng.randint(2, 5),
        **scales,
    )
    ids = integers(path, (rng.randint(1, 3), rng.randint(1, 12)), 0, size)
    model_class = rng.choice(("Model", "ForCausalImageModeling", "ForImageClassification"))
    return case(rng, path, f"ImageGPT{model_class}", config, {"input_ids": ids})


def chmv2(rng: Random, path: str) -> Case:
    made, count = vit(rng) | {"num_channels": 3}, rng.randint(2, 4)
    made["num_hidden_layers"] = count + 1
    made.pop("qkv_bias")
    layout = transformers.DINOv3ViTConfig(
        **made,
        intermediate_size=rng.randint(4, 30),
        num_register_tokens=rng.randint(0, 3),
        out_indices=sorted(rng.sample(range(1, count + 2), count)),
        return_class_token=True,
        apply_layernorm=rng.random() < 0.5,
    )
    config = transformers.CHMv2Config(
        backbone_config=layout,
        patch_size=made["patch_size"],
        post_process_channels=[rng.randint(2, 12) for _ in range(count)],
        reassemble_factors=sorted((rng.choice((4, 2, 1, 0.5)) for _ in range(count)), reverse=True),
        fusion_hidden_size=2 * rng.randint(1, 6),
        head_hidden_size=rng.randint(2, 9),
        number_output_channels=rng.choice((1, 7, 16)),
        readout_type=rng.choice(("ignore", "add", "project")),
        bins_strategy=rng.choice(("linear", "log", "chmv2_mixlog")),
        norm_strategy=rng.choice(("linear", "softmax", "sigmoid", "chmv2_mixlog")),
    )
    size = made["patch_size"]
    return case(rng, path, "CHMv2ForDepthEstimation", config, pixels(rng, path, 3, size * rng.randint(2, 6), size * rng.randint(2, 6)))


def sapiens2(rng: Random, path: str) -> Case:
    made, count = vit(rng), rng.randint(1, 4)
    for name in ("qkv_bias", "layer_norm_eps"):
        made.pop(name)
    heads = made["num_attention_heads"]
    made |= {"hidden_size": 8 * heads * rng.randint(1, 3), "num_hidden_layers": count, "num_register_tokens": rng.randint(1, 4), "num_channels": 3}
    shared = [rng.choice([divisor for divisor in range(1, heads + 1) if heads % divisor == 0]) for _ in range(count)]
    shuffles = rng.random() < 0.5
    layers: dict[str, Any] = {"use_pixel_shuffle": shuffles, "upsample_kernel_size": 3 if shuffles else 4}
    layers |= {"upsample_out_channels": [rng.randint(2, 8) for _ in range(2)], "conv_out_channels": [rng.randint(2, 8)]}
    config = transformers.Sapiens2Config(
        **made,
        intermediate_size=rng.randint(4, 30),
        num_key_value_heads_per_layer=shared,
        head_config=transformers.Sapiens2HeadConfig(**layers),
        use_qk_norm=rng.random() < 0.5,
        num_labels=4,
    )
    model_class = rng.choice(("ForSemanticSegmentation", "ForPoseEstimation", "ForNormalEstimation", "ForImageMatting"))
    if model_class in ("ForNormalEstimation", "ForImageMatting") and not shuffles:
        model_class = "ForSemanticSegmentation"
    elif shuffles:
        model_class = rng.choice(("ForNormalEstimation", "ForImageMatting"))
    size = made["patch_size"]
    inputs = pixels(rng, path, 3, size * rng.randint(1, 6), size * rng.randint(2, 6))
    return case(rng, path, f"Sapiens2{model_class}", config, inputs)


DRAWN = {
    "vit_mae": vit_mae,
    "radio": radio,
    "swin2sr": swin2sr,
    "maskformer-swin": maskformer_swin,
    "uvdoc": uvdoc,
    "mgp-str": mgp_str,
    "imagegpt": imagegpt,
    "chmv2": chmv2,
    "sapiens2": sapiens2,
}
