"""Models of depth and segmentation drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random

import transformers
from transformers import PreTrainedConfig

from weft_reference.cases import Case
from weft_reference.drawn.common import EPSILONS, Changes, store
from weft_reference.drawn.pictures import pixels, transformer


def segments(prefix: str, rng: Random, path: str) -> Case:
    """BEiT and its like, as heads for segmentation need them."""
    made = transformer(rng) | {"num_hidden_layers": rng.randint(4, 6), "num_channels": 3, "num_labels": rng.randint(2, 6)}
    made["image_size"] = made["patch_size"] * rng.randint(2, 6)
    biases = {"use_relative_position_bias": rng.random() < 0.5, "use_shared_relative_position_bias": rng.random() < 0.5}
    choice = {"out_indices": sorted(rng.sample(range(1, made["num_hidden_layers"] + 1), 4)), "pool_scales": rng.choice(([1, 2, 3, 6], [2, 4]))}
    heads = {"use_mean_pooling": rng.random() < 0.5, "use_auxiliary_head": rng.random() < 0.5, "auxiliary_channels": 4}
    config = getattr(transformers, f"{prefix}Config")(**(made | biases | choice | heads))
    inputs = pixels(rng, path, 3, config.image_size)
    return Case(path, f"{prefix}ForSemanticSegmentation", config, inputs, "Drawn at random.", store(rng))


def mobilenet_v2(rng: Random, path: str) -> Case:
    sizes = {"depth_multiplier": rng.choice((0.1, 0.25)), "output_stride": rng.choice((8, 16, 32)), "tf_padding": rng.random() < 0.5}
    # Without so large an epsilon, values grow from block to block.
    config = transformers.MobileNetV2Config(**sizes, layer_norm_eps=0.3, num_labels=rng.randint(2, 6))
    inputs = pixels(rng, path, 3, rng.randint(32, 70), rng.randint(32, 70))
    return Case(path, "MobileNetV2ForSemanticSegmentation", config, inputs, "Drawn at random.", store(rng))


def neck(rng: Random, count: int) -> Changes:
    factors = [rng.choice((4, 2, 1, 0.5)) for _ in range(count)]
    return {
        "neck_hidden_sizes": [2 * rng.randint(2, 8) for _ in range(count)],
        "reassemble_factors": sorted(factors, reverse=True),
        "fusion_hidden_size": 2 * rng.randint(2, 8),
    }


def depth_anything(rng: Random, path: str) -> Case:
    count = rng.randint(2, 4)
    made = transformer(rng) | {"mlp_ratio": rng.randint(1, 4), "num_hidden_layers": count + 1, "num_channels": 3}
    del made["intermediate_size"]
    indices = sorted(rng.sample(range(1, count + 2), count))
    backbone = transformers.Dinov2Config(**made, out_indices=indices, apply_layernorm=rng.random() < 0.5, reshape_hidden_states=False)
    sizes = {"patch_size": made["patch_size"], "reassemble_hidden_size": made["hidden_size"], "head_hidden_size": rng.randint(2, 9)}
    metric = {"depth_estimation_type": rng.choice(("metric", "relative")), "max_depth": rng.randint(1, 80)}
    config = transformers.DepthAnythingConfig(backbone_config=backbone, **sizes, **neck(rng, count), **metric)
    inputs = pixels(rng, path, 3, *(made["patch_size"] * rng.randint(2, 7) + rng.randint(0, 1) for _ in range(2)))
    return Case(path, "DepthAnythingForDepthEstimation", config, inputs, "Drawn at random.", store(rng))


def dpt(rng: Random, path: str) -> Case:
    count = rng.randint(2, 4)
    made = transformer(rng) | {"num_hidden_layers": count + 1, "num_channels": 3, "num_labels": rng.randint(2, 5)}
    choice = {"backbone_out_indices": sorted(rng.sample(range(count + 1), count)), "readout_type": rng.choice(("project", "add", "ignore"))}
    norms = {"use_batch_norm_in_fusion_residual": rng.random() < 0.5, "use_auxiliary_head": rng.random() < 0.5, "qkv_bias": rng.random() < 0.7}
    config = transformers.DPTConfig(**(made | choice | norms | neck(rng, count)))
    inputs = pixels(rng, path, 3, made["patch_size"] * rng.randint(2, 6))
    head = rng.choice(("ForDepthEstimation", "ForSemanticSegmentation"))
    return Case(path, f"DPT{head}", config, inputs, "Drawn at random.", store(rng))


def glpn(rng: Random, path: str) -> Case:
    count = rng.randint(2, 4)
    heads = [rng.choice((1, 2, 3)) for _ in range(count)]
    each = {"depths": [rng.randint(1, 2) for _ in heads], "sr_ratios": [rng.choice((1, 2)) for _ in heads], "mlp_ratios": [rng.randint(1, 4) for _ in heads]}
    patches = {"patch_sizes": [7] + [3] * (count - 1), "strides": [4] + [2] * (count - 1), "num_encoder_blocks": count}
    sizes = {"hidden_sizes": [head * rng.choice((4, 6)) for head in heads], "num_attention_heads": heads, "decoder_hidden_size": 2 * rng.randint(2, 8)}
    config = transformers.GLPNConfig(**each, **patches, **sizes, max_depth=rng.randint(1, 80))
    edge = 2 ** (count + 1)
    inputs = pixels(rng, path, 3, edge * rng.randint(1, 4), edge * rng.randint(1, 4))
    return Case(path, "GLPNForDepthEstimation", config, inputs, "Drawn at random.", store(rng))


def backbone(rng: Random) -> PreTrainedConfig:
    names = [f"stage{number}" for number in range(1, 5)]
    sizes = {"hidden_sizes": [4 * rng.randint(1, 5) for _ in names], "depths": [rng.randint(1, 2) for _ in names], "out_features": names}
    if rng.random() < 0.5:
        return transformers.ConvNextConfig(**sizes, layer_scale_init_value=rng.choice((0.0, 0.5)), layer_norm_eps=rng.choice(EPSILONS))
    if rng.random() < 0.5:
        grid = {"embed_dim": 4, "num_heads": [1, 1, 2, 2], "window_size": rng.randint(2, 7), "image_size": 64}
        return transformers.SwinConfig(depths=sizes["depths"], out_features=names, **grid)
    return transformers.ResNetConfig(**sizes, embedding_size=rng.randint(2, 8), layer_type=rng.choice(("basic", "bottleneck")))


def upernet(rng: Random, path: str) -> Case:
    sizes = {"hidden_size": rng.randint(2, 12), "auxiliary_channels": 4, "use_auxiliary_head": rng.random() < 0.5}
    scales = rng.choice(([1, 2, 3, 6], [1], [2, 5]))
    config = transformers.UperNetConfig(backbone_config=backbone(rng), **sizes, pool_scales=scales, num_labels=rng.randint(2, 6))
    inputs = pixels(rng, path, 3, rng.randint(64, 110), rng.randint(64, 110))
    return Case(path, "UperNetForSemanticSegmentation", config, inputs, "Drawn at random.", store(rng))


def zoedepth(rng: Random, path: str) -> Case:
    count = rng.randint(2, 4)
    made = transformer(rng) | {"num_hidden_layers": count + 1, "num_channels": 3}
    made["image_size"] = made["patch_size"] * rng.randint(2, 6)
    indices = sorted(rng.sample(range(count + 2), count))
    biases = {"use_relative_position_bias": rng.random() < 0.6, "use_shared_relative_position_bias": rng.random() < 0.4}
    places = {"use_absolute_position_embeddings": rng.random() < 0.4, "use_mean_pooling": rng.random() < 0.5}
    backbone = transformers.BeitConfig(**made, **biases, **places, out_indices=indices, reshape_hidden_states=False)
    names = rng.choice(([None], ["nyu", "kitti"]))
    bins = [{"name": name, "n_bins": rng.randint(2, 12), "min_depth": 0.001, "max_depth": rng.randint(5, 80)} for name in names]
    sizes = neck(rng, count)
    # The smallest map is made with a stride, at most one.
    sizes["reassemble_factors"] = [4, 2, 1, 0.5][-count:]
    config = transformers.ZoeDepthConfig(
        backbone_config=backbone,
        **sizes,
        bottleneck_features=sizes["fusion_hidden_size"],
        num_relative_features=rng.randint(1, 6),
        num_attractors=[rng.randint(1, 5) for _ in range(4)],
        bin_embedding_dim=2 * rng.randint(1, 6),
        attractor_kind=rng.choice(("mean", "sum")),
        bin_centers_type=rng.choice(("normed", "softplus")),
        bin_configurations=bins,
        use_batch_norm_in_fusion_residual=rng.random() < 0.4,
        num_patch_transformer_layers=4,
        patch_transformer_hidden_size=128,
        patch_transformer_intermediate_size=rng.randint(4, 20),
        patch_transformer_num_attention_heads=rng.choice((1, 2, 4)),
    )
    inputs = pixels(rng, path, 3, *(made["patch_size"] * rng.randint(2, 7) for _ in range(2)))
    return Case(path, "ZoeDepthForDepthEstimation", config, inputs, "Drawn at random.", store(rng))


DRAWN = {
    "beit": partial(segments, "Beit"),
    "data2vec-vision": partial(segments, "Data2VecVision"),
    "mobilenet_v2": mobilenet_v2,
    "depth_anything": depth_anything,
    "dpt": dpt,
    "glpn": glpn,
    "upernet": upernet,
    "zoedepth": zoedepth,
}
