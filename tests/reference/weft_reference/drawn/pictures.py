"""Models of pictures drawn at random, and of texts beside them."""

from __future__ import annotations

from functools import partial
from random import Random

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import EPSILONS, Changes, functions, grid, store
from weft_reference.inputs import floats
from weft_reference.models import clip_text
from weft_reference.models.convolutional import KIN
from weft_reference.models.modulated import KIN as MODULATED
from weft_reference.models.video import KIN as VIDEO

CLIP_HEADS = ("Model", "ModelWithProjection")


def pixels(rng: Random, path: str, channels: int, height: int, width: int | None = None) -> Changes:
    shape = (rng.randint(1, 4), channels, height, width or height)
    return {"pixel_values": floats(f"{path}.{rng.random()}", shape, -2.0, 2.0)}


def transformer(rng: Random) -> Changes:
    """A stack of layers over patches."""
    heads, patch = rng.choice((1, 2, 3, 5)), rng.randint(2, 6)
    return {
        "hidden_size": heads * rng.choice((4, 6, 8)),
        "num_hidden_layers": rng.randint(1, 4),
        "num_attention_heads": heads,
        "intermediate_size": rng.randint(8, 60),
        "patch_size": patch,
        "image_size": patch * rng.randint(2, 5),
        "num_channels": rng.choice((1, 3, 3)),
        "layer_norm_eps": rng.choice(EPSILONS),
    }


def patches(prefix: str, heads: tuple[str, ...], rng: Random, path: str) -> Case:
    head = rng.choice(heads)
    made = transformer(rng) | {"qkv_bias": rng.random() < 0.7, "num_labels": rng.randint(1, 6)}
    made["encoder_stride"] = made["patch_size"]
    config_class = getattr(transformers, f"{prefix}Config")
    config = config_class(**(made | functions(rng, config_class(**made).to_dict())))
    inputs = pixels(rng, path, config.num_channels, config.image_size)
    if head == "ForMaskedImageModeling":
        across = config.image_size // config.patch_size
        inputs["bool_masked_pos"] = grid(rng, (len(inputs["pixel_values"]), across**2), 2).astype(bool)
    return Case(path, prefix + head, config, inputs, "Drawn at random.", store(rng))


def dinov2(rng: Random, path: str) -> Case:
    made = transformer(rng) | {"qkv_bias": rng.random() < 0.7, "mlp_ratio": rng.randint(1, 4), "num_labels": 4}
    del made["intermediate_size"]
    config = transformers.Dinov2Config(**made)
    height, width = (config.patch_size * rng.randint(1, 6) for _ in range(2))
    head = rng.choice(("Model", "ForImageClassification"))
    return Case(path, f"Dinov2{head}", config, pixels(rng, path, config.num_channels, height, width), "", store(rng))


def resnet(rng: Random, path: str) -> Case:
    stages = rng.randint(1, 4)
    config = transformers.ResNetConfig(
        num_channels=rng.choice((1, 3)),
        embedding_size=rng.randint(2, 10),
        hidden_sizes=[4 * rng.randint(1, 6) for _ in range(stages)],
        depths=[rng.randint(1, 3) for _ in range(stages)],
        layer_type=rng.choice(("basic", "bottleneck")),
        hidden_act=rng.choice(("relu", "gelu", "silu")),
        downsample_in_first_stage=rng.random() < 0.5,
        downsample_in_bottleneck=rng.random() < 0.5,
        num_labels=rng.randint(1, 6),
    )
    head = rng.choice(("Model", "ForImageClassification"))
    inputs = pixels(rng, path, config.num_channels, rng.randint(32, 70), rng.randint(32, 70))
    return Case(path, f"ResNet{head}", config, inputs, "Drawn at random.", store(rng))


def widths(rng: Random, count: int, step: int = 2) -> list[int]:
    return [step * rng.randint(2, 8) for _ in range(count)]


def stages(model: str, rng: Random) -> Changes:
    """A network of stages, by the fields that its configuration has."""
    count = rng.randint(2, 4)
    depths, act = [rng.randint(1, 3) for _ in range(count)], rng.choice(("relu", "gelu", "silu"))
    heads = [rng.choice((1, 2, 3)) for _ in range(count)]
    by_heads = [head * rng.choice((4, 6)) for head in heads]
    match model:
        case "bit":
            layers = {"layer_type": rng.choice(("preactivation", "bottleneck")), "embedding_dynamic_padding": rng.random() < 0.5}
            padding = {"global_padding": rng.choice((None, "SAME")), "output_stride": rng.choice((8, 16, 32))}
            return {"hidden_sizes": [8 * rng.randint(1, 4) for _ in depths], "depths": depths, "num_groups": 4, "embedding_size": 8, "hidden_act": act} | layers | padding
        case "hgnet_v2":
            sizes = widths(rng, count + 1)
            each = {"stage_downsample": [rng.random() < 0.6 for _ in depths], "stage_light_block": [rng.random() < 0.5 for _ in depths]}
            kernels = {"stage_kernel_size": [rng.choice((3, 5)) for _ in depths], "stage_numb_of_layers": [rng.randint(1, 3) for _ in depths]}
            channels = {"stage_in_channels": sizes[:-1], "stage_mid_channels": widths(rng, count), "stage_out_channels": sizes[1:]}
            rest = {"stem_channels": [3, 2 * rng.randint(1, 4), sizes[0]], "stage_num_blocks": depths, "depths": depths, "hidden_sizes": sizes[1:]}
            return rest | channels | kernels | each | {"stage_downsample_strides": [2] * count, "use_learnable_affine_block": rng.random() < 0.5, "hidden_act": act}
        case "mobilevit":
            attention = {"hidden_sizes": [4 * rng.randint(1, 5) for _ in range(3)], "num_attention_heads": rng.choice((1, 2, 4)), "patch_size": rng.randint(1, 3)}
            return attention | {"neck_hidden_sizes": widths(rng, 7), "expand_ratio": rng.choice((1.0, 2.5)), "output_stride": rng.choice((8, 16, 32)), "hidden_act": act}
        case "mobilevitv2":
            blocks = {"n_attn_blocks": [rng.randint(1, 2) for _ in range(3)], "base_attn_unit_dims": [8 * rng.randint(2, 5) for _ in range(3)]}
            return blocks | {"width_multiplier": rng.choice((0.2, 0.4)), "patch_size": rng.randint(1, 2), "ffn_multiplier": rng.randint(2, 3), "output_stride": rng.choice((8, 16, 32))}
        case "cvt":
            per_stage = {"depth": [rng.randint(stage + 1, stage + 2) for stage in range(3)], "mlp_ratio": [rng.choice((1.5, 2.0)) for _ in range(3)]}
            heads = [rng.choice((1, 2)) for _ in range(3)]
            return per_stage | {"embed_dim": [head * rng.choice((4, 6)) for head in heads], "num_heads": heads}
        case "pvt":
            edge = 2 ** (count + 1) * rng.randint(1, 2)
            each = {"sequence_reduction_ratios": [rng.choice((1, 2)) for _ in depths[1:]] + [1], "mlp_ratios": [rng.randint(1, 3) for _ in depths]}
            patches = {"patch_sizes": [4] + [2] * (count - 1), "strides": [4] + [2] * (count - 1), "num_encoder_blocks": count}
            return each | patches | {"image_size": edge, "depths": depths, "hidden_sizes": by_heads, "num_attention_heads": heads, "hidden_act": act}
        case "swiftformer":
            scale = {"use_layer_scale": rng.random() < 0.5, "mlp_ratio": rng.randint(1, 4), "down_patch_size": rng.choice((3, 5)), "down_pad": rng.randint(1, 2)}
            return scale | {"depths": depths, "embed_dims": widths(rng, count), "downsamples": [rng.random() < 0.7 for _ in depths], "hidden_act": act}
    return {"hidden_sizes": widths(rng, count), "depths": depths, "hidden_act": act, "layer_norm_eps": rng.choice(EPSILONS)}


def convolutional(model: str, heads: tuple[str, ...], rng: Random, path: str) -> Case:
    prefix = KIN[model]
    config = getattr(transformers, f"{prefix}Config")(**(stages(model, rng) | {"num_labels": rng.randint(1, 6)}))
    square = getattr(config, "image_size", 0) if model == "pvt" else None
    inputs = pixels(rng, path, config.num_channels, square or rng.randint(96, 130), square or rng.randint(96, 130))
    return Case(path, prefix + rng.choice(heads), config, inputs, "Drawn at random.", store(rng))


def videos(model: str, rng: Random, path: str) -> Case:
    made = transformer(rng) | {"num_frames": rng.randint(2, 6), "num_labels": rng.randint(1, 6)}
    match model:
        case "vivit":
            edge = made.pop("patch_size")
            made |= {"tubelet_size": [rng.randint(1, 2), edge, edge], "qkv_bias": rng.random() < 0.5}
        case "videomae":
            made |= {"tubelet_size": rng.randint(1, 2), "qv_bias": rng.random() < 0.5, "use_mean_pooling": rng.random() < 0.5}
            made["hidden_size"] *= 2
        case _:
            made |= {"attention_type": rng.choice(("divided_space_time", "space_only", "joint_space_time"))}
    prefix = VIDEO[model]
    config = getattr(transformers, f"{prefix}Config")(**made)
    size = (rng.randint(1, 3), config.num_frames, config.num_channels, config.image_size, config.image_size)
    inputs = {"pixel_values": floats(f"{path}.{rng.random()}", size, -2.0, 2.0)}
    return Case(path, prefix + rng.choice(("Model", "ForVideoClassification")), config, inputs, "", store(rng))


def modulated(model: str, heads: tuple[str, ...], rng: Random, path: str) -> Case:
    size = (rng.randint(40, 70), rng.randint(40, 70))
    match model:
        case "focalnet":
            count = rng.randint(2, 4)
            depths = [rng.randint(1, 2) for _ in range(count)]
            switches = ("use_conv_embed", "use_layerscale", "use_post_layernorm", "normalize_modulator")
            made = {switch: rng.random() < 0.5 for switch in switches} | {"depths": depths, "embed_dim": 2 * rng.randint(2, 5)}
            made |= {"focal_levels": [rng.randint(1, 3) for _ in depths], "focal_windows": [rng.choice((3, 5)) for _ in depths]}
            made["hidden_sizes"] = [made["embed_dim"] * 2 ** min(stage + 1, count - 1) for stage in range(count)]
        case "levit":
            key, edge = rng.choice((2, 4)), 16 * rng.randint(2, 6)
            made = {"image_size": edge, "hidden_sizes": [8 * rng.randint(1, 4) for _ in range(3)], "key_dim": [key] * 3}
            made |= {"depths": [rng.randint(1, 2) for _ in range(3)], "num_attention_heads": [rng.randint(1, 3) for _ in range(3)]}
            made |= {"mlp_ratio": [rng.randint(0, 2) for _ in range(3)], "attention_ratio": [rng.randint(1, 3) for _ in range(3)]}
            size = (edge, edge)
        case _:
            made = transformer(rng) | {"n_cls_tokens": rng.randint(1, 4), "mlp_ratio": rng.randint(1, 4), "apply_layernorm": rng.random() < 0.5}
            del made["intermediate_size"]
            size = tuple(made["patch_size"] * rng.randint(1, 6) for _ in range(2))
    prefix = MODULATED[model]
    config = getattr(transformers, f"{prefix}Config")(**(made | {"num_labels": rng.randint(1, 6)}))
    return Case(path, prefix + rng.choice(heads), config, pixels(rng, path, config.num_channels, *size), "", store(rng))


def text_side(rng: Random) -> Changes:
    heads = rng.choice((1, 2, 3))
    return clip_text.sizes(
        hidden_size=heads * rng.choice((4, 6, 8)),
        num_attention_heads=heads,
        num_hidden_layers=rng.randint(1, 3),
        intermediate_size=rng.randint(8, 40),
        projection_dim=rng.randint(4, 20),
        hidden_act=rng.choice(("quick_gelu", "gelu")),
        eos_token_id=rng.choice((2, clip_text.END)),
    )


def clip_texts(rng: Random, path: str) -> Changes:
    longest = rng.randint(2, 20)
    lengths = (longest, *(rng.randint(2, longest) for _ in range(rng.randint(0, 3))))
    return clip_text.texts(lengths, rng.choice(("right", "left")), key=f"{path}.{rng.random()}")


def clip_of(side: str, rng: Random, path: str) -> Case:
    if side == "Text":
        config, inputs = transformers.CLIPTextConfig(**text_side(rng)), clip_texts(rng, path)
    else:
        config = transformers.CLIPVisionConfig(**transformer(rng), projection_dim=rng.randint(4, 20))
        inputs = pixels(rng, path, config.num_channels, config.image_size)
    return Case(path, f"CLIP{side}{rng.choice(CLIP_HEADS)}", config, inputs, "Drawn at random.", store(rng))


def clip(rng: Random, path: str) -> Case:
    config = transformers.CLIPConfig(
        text_config=text_side(rng), vision_config=transformer(rng), projection_dim=rng.randint(4, 20)
    )
    inputs = pixels(rng, path, config.vision_config.num_channels, config.vision_config.image_size)
    inputs |= clip_texts(rng, path)
    return Case(path, "CLIPModel", config, inputs, "Drawn at random.", store(rng))


MASKED = ("Model", "ForImageClassification", "ForMaskedImageModeling")

DRAWN = {
    "vit": partial(patches, "ViT", MASKED),
    "deit": partial(patches, "DeiT", (*MASKED, "ForImageClassificationWithTeacher")),
    "dinov2": dinov2,
    "resnet": resnet,
    "bit": partial(convolutional, "bit", ("Model", "ForImageClassification", "Backbone")),
    "hgnet_v2": partial(convolutional, "hgnet_v2", ("ForImageClassification", "Backbone")),
    "dinov3_convnext": partial(convolutional, "dinov3_convnext", ("Model", "Backbone")),
    **{model: partial(convolutional, model, MASKED[:2]) for model in ("mobilevit", "mobilevitv2", "cvt", "pvt", "swiftformer")},
    **{model: partial(videos, model) for model in VIDEO},
    "focalnet": partial(modulated, "focalnet", ("Model", "ForImageClassification", "Backbone")),
    "levit": partial(modulated, "levit", ("Model", "ForImageClassification", "ForImageClassificationWithTeacher")),
    # Not as a backbone, whose norm the reference confuses with the network's where a file has both.
    "pixio": partial(modulated, "pixio", ("Model",)),
    "clip-text": partial(clip_of, "Text"),
    "clip-vision": partial(clip_of, "Vision"),
    "clip": clip,
}
