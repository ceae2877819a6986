"""Networks of timm, EdgeTAM, tables' structures, matches of images and layouts with an order, drawn at random."""

from __future__ import annotations

from random import Random
from typing import Any

import transformers

from weft_reference import timm_networks
from weft_reference.cases import Case
from weft_reference.drawn.common import Changes, store
from weft_reference.drawn.pictures import pixels
from weft_reference.drawn.segmenters import prompts
from weft_reference.inputs import floats
from weft_reference.models import efficientloftr, keypoints, omdet_turbo, pp_doclayout, sam2, table_structure, timm


def drawn(rng: Random, path: str, model_class: str, config: Any, inputs: Changes) -> Case:
    return Case(path, model_class, config, inputs, "Drawn at random.", store(rng))


def resnet(rng: Random) -> tuple[str, Changes]:
    sizes: Changes = {"layers": [rng.randint(1, 2) for _ in range(4)]}
    sizes |= {"channels": [4 * rng.randint(1, 6) for _ in range(4)]}
    plain, deep = ("resnet18", "resnet50", "resnext50_32x4d"), ("resnet34d", "resnet50s", "resnet101c", "resnet10t")
    name = rng.choice(plain + deep)
    if name.startswith("resnext"):
        sizes |= {"cardinality": 2, "base_width": 32}
    if name[-1] in "cdst":
        sizes |= {"stem_width": 4 * rng.randint(1, 5)}
    return name, sizes


def repvit(rng: Random) -> tuple[str, Changes]:
    sizes = {"embed_dim": [2 * rng.randint(2, 30) for _ in range(4)], "depth": [rng.randint(1, 3) for _ in range(4)]}
    return rng.choice(("repvit_m1.dist_in1k", "repvit_m0_9", "repvit_m2_3")), sizes


def swin(rng: Random) -> tuple[str, Changes]:
    stages, first, patch = rng.randint(2, 4), rng.choice((1, 2, 3)), rng.randint(2, 5)
    sizes: Changes = {"embed_dim": 4 * first, "depths": [rng.randint(1, 3) for _ in range(stages)]}
    sizes |= {"num_heads": [first << stage for stage in range(stages)], "patch_size": patch, "img_size": patch * rng.randint(8, 14)}
    sizes |= {"window_size": rng.choice((2, 3, [rng.randint(2, 5) for _ in range(stages)])), "always_partition": rng.random() < 0.5}
    if isinstance(sizes["window_size"], list) and stages == 2:
        sizes["window_size"] = 4  # Two numbers are the rows and columns of a window.
    return rng.choice(("swin_tiny_patch4_window7_224", "swin_base_patch4_window12_384")), sizes | {"mlp_ratio": rng.choice((2.0, 3.5))}


def words(rng: Random, path: str) -> Case:
    """OmDet-Turbo on Swin, or on timm's of the size that its name says."""
    timm_networks.load()
    act = lambda: rng.choice(("relu", "gelu", "silu"))  # noqa: E731
    size = (32 * rng.randint(2, 4), 32 * rng.randint(2, 4))
    chosen: Changes = {"class_distance_type": rng.choice(("cosine", "dot")), "learn_initial_query": rng.random() < 0.3, "num_queries": rng.randint(2, 9)}
    chosen |= {"decoder_num_layers": rng.randint(1, 4), "encoder_layers": rng.randint(0, 2), "decoder_num_points": rng.randint(1, 4)}
    chosen |= {"csp_activation": act(), "conv_norm_activation": act(), "decoder_activation": act(), "encoder_feedforward_activation": act()}
    chosen |= {"encoder_projection_indices": rng.choice(([2], [0, 2], [1])), "hidden_expansion": rng.randint(1, 2)}
    if rng.random() < 0.5:
        size = (size[0], size[0])
        backbone = omdet_turbo.timm_swin(img_size=size[0], always_partition=rng.random() < 0.5, out_indices=[0, 1, 2])
    else:
        backbone = transformers.SwinConfig(**(omdet_turbo.SWIN | {"window_size": rng.randint(2, 5)}))
        chosen["apply_layernorm_after_vision_backbone"] = False
    classes = tuple(tuple(rng.randint(3, 9) for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(1, 3)))
    given = omdet_turbo.inputs(path, classes, tuple(rng.randint(3, 12) for _ in classes), size)
    return drawn(rng, path, "OmDetTurboForObjectDetection", omdet_turbo.config(backbone, **chosen), given)


def wrapped(rng: Random, path: str) -> Case:
    timm_networks.load()
    head = rng.choice(("Model", "ForImageClassification"))
    if rng.random() < 0.4:
        heads, patch, side = rng.choice((1, 2, 3)), rng.randint(3, 8), rng.randint(2, 5)
        scaled = ("vit_small_patch14_dinov2", "vit_small_patch14_reg4_dinov2")
        name = rng.choice(("vit_base_patch16_224.augreg_in21k", *scaled))
        sizes: Changes = {"embed_dim": 8 * heads, "num_heads": heads, "depth": rng.randint(1, 3)}
        sizes |= {"patch_size": patch, "img_size": patch * side}
        sizes |= {"global_pool": rng.choice(("token", "avg")), "mlp_ratio": rng.choice((2.0, 3.5))}
        images = pixels(rng, path, 3, patch * side)
    elif rng.random() < 0.5:
        name, sizes = swin(rng)
        images = pixels(rng, path, 3, sizes["img_size"])
    else:
        name, sizes = rng.choice((resnet, repvit))(rng)
        images = pixels(rng, path, 3, rng.randint(32, 90), rng.randint(32, 90))
    config = transformers.TimmWrapperConfig(architecture=name, model_args=sizes, num_labels=rng.randint(1, 7))
    return drawn(rng, path, f"TimmWrapper{head}", config, images)


def edgetam(rng: Random, path: str) -> Case:
    timm_networks.load()
    name, sizes = repvit(rng)
    high, wide = (32 * rng.randint(2, 4) for _ in range(2))
    config = encoder(name, sizes, [high, wide], 4 * rng.randint(1, 6), rng.randint(1, 4))
    return drawn(rng, path, "EdgeTamVisionModel", config, pixels(rng, path, 3, high, wide))


def encoder(name: str, sizes: Changes, size: list[int], width: int, levels: int) -> Any:
    arguments = sizes | {"features_only": True, "out_indices": [0, 1, 2, 3]}
    backbone = transformers.TimmWrapperConfig(architecture=name, model_args=arguments)
    maps = [[side // scale for side in size] for scale in (4, 8, 16)]
    return transformers.EdgeTamVisionConfig(
        backbone_config=backbone,
        backbone_channel_list=sizes["embed_dim"][::-1],
        backbone_feature_sizes=maps,
        fpn_hidden_size=width,
        num_feature_levels=levels,
    )


def promptable(rng: Random, path: str) -> Case:
    timm_networks.load()
    name, sizes = repvit(rng)
    size = 32 * rng.randint(2, 4)
    vision = encoder(name, sizes, [size, size], 16, 3)
    config = sam2.prompted("EdgeTam", vision, size, 16, {"mlp_dim": rng.randint(8, 40)})
    inputs = pixels(rng, path, 3, size)
    return drawn(rng, path, "EdgeTamModel", config, inputs | prompts(rng, path, len(inputs["pixel_values"]), size))


def table(rng: Random, path: str) -> Case:
    sizes: Changes = {"hidden_size": rng.randint(4, 20), "out_channels": rng.randint(40, 60)}
    sizes |= {"max_text_length": rng.randint(0, 5), "post_conv_out_channels": 2 * rng.randint(2, 9)}
    if path.startswith("slanext"):
        config, name, images = table_structure.slanext(**sizes), "SLANeXt", pixels(rng, path, 3, 32)
    else:
        config, name = table_structure.slanet(csp_num_blocks=rng.randint(1, 3), **sizes), "SLANet"
        images = pixels(rng, path, 3, rng.randint(40, 100), rng.randint(40, 100))
    return drawn(rng, path, f"{name}ForTableRecognition", config, images)


def matching(rng: Random, path: str) -> Case:
    widths = [8 * rng.randint(1, 3) for _ in range(3)]
    sizes: Changes = {"out_features": [*widths, 32], "stage_num_blocks": [rng.randint(1, 3) for _ in range(4)]}
    sizes |= {"num_attention_layers": rng.randint(1, 3), "attention_bias": rng.random() < 0.5}
    images = floats(path, (rng.randint(1, 3), 2, 3, 32 * rng.randint(2, 3), 32 * rng.randint(2, 4)), 0.0, 1.0)
    head = rng.choice(("Model", "ForKeypointMatching"))
    return drawn(rng, path, f"EfficientLoFTR{head}", efficientloftr.config(**sizes), {"pixel_values": images})


def detecting(rng: Random, path: str) -> Case:
    images = pixels(rng, path, 3, rng.randint(24, 60), rng.randint(24, 60))
    return drawn(rng, path, "SuperPointForKeypointDetection", keypoints.detector(**detector(rng)), images)


def detector(rng: Random) -> Changes:
    sizes: Changes = {"encoder_hidden_sizes": [rng.randint(3, 9) for _ in range(4)], "nms_radius": rng.randint(1, 5)}
    sizes |= {"decoder_hidden_size": rng.randint(6, 20), "border_removal_distance": rng.randint(0, 5)}
    return sizes | {"max_keypoints": rng.choice((-1, 5, 14))}


def glued(rng: Random, path: str) -> Case:
    images = floats(path, (rng.randint(1, 3), 2, 3, 8 * rng.randint(4, 6), 8 * rng.randint(4, 6)), 0.0, 1.0)
    width = 8 * rng.randint(1, 3)
    detects = {"detector": detector(rng) | {"descriptor_decoder_dim": width}}
    if path.startswith("superglue"):
        kinds = [rng.choice(("self", "cross")) for _ in range(rng.randint(1, 4))]
        sizes: Changes = {"hidden_size": width, "gnn_layers_types": kinds, "sinkhorn_iterations": rng.randint(1, 30)}
        sizes |= {"keypoint_encoder_sizes": [rng.randint(3, 12) for _ in range(rng.randint(1, 3))]}
        config, name = keypoints.superglue_config(**sizes, **detects), "SuperGlue"
    else:
        # With one layer the reference fails where it prunes.
        sizes = {"descriptor_dim": rng.choice((width, 32)), "num_hidden_layers": rng.randint(2, 4)}
        sizes |= {"num_attention_heads": rng.choice((2, 4)), "num_key_value_heads": rng.choice((1, 2))}
        config, name = keypoints.lightglue_config(**sizes, **detects), "LightGlue"
    return drawn(rng, path, f"{name}ForKeypointMatching", config, {"pixel_values": images})


def layout(rng: Random, path: str) -> Case:
    labels = rng.randint(1, 6)
    limits = [rng.choice((0.4, 0.5, 0.6)) for _ in range(labels)]
    sizes: Changes = {"decoder_layers": rng.randint(2, 4), "num_queries": rng.randint(2, 9), "num_labels": labels}
    sizes |= {"class_thresholds": limits, "class_order": [rng.randrange(4) for _ in range(labels)]}
    images = pixels(rng, path, 3, 32 * rng.randint(2, 4), 32 * rng.randint(2, 4))
    return drawn(rng, path, "PPDocLayoutV2ForObjectDetection", pp_doclayout.layout_order(**sizes), images)


DRAWN = {
    "timm_wrapper": wrapped,
    "omdet-turbo": words,
    "edgetam_vision_model": edgetam,
    "edgetam": promptable,
    "slanet": table,
    "slanext": table,
    "efficientloftr": matching,
    "superpoint": detecting,
    "superglue": glued,
    "lightglue": glued,
    "pp_doclayout_v2": layout,
}
