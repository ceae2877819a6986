"""SAM 2 and 3, dense prediction, layouts of documents and videos drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, EPSILONS, Changes, store
from weft_reference.drawn.pictures import pixels
from weft_reference.drawn.segmenters import prompts
from weft_reference.inputs import floats, integers, text_batch
from weft_reference.models import deimv2, pe_video, pp_doclayout, sam2, sam2_video, sam3, sam3_video


def heads_and_width(rng: Random) -> Changes:
    heads = rng.choice((1, 2, 3))
    return {"num_attention_heads": heads, "hidden_size": heads * rng.choice((4, 8, 12))}


def promptable(prefix: str, rng: Random, path: str) -> Case:
    width = 16 * rng.randint(1, 2)
    decoder = {"hidden_size": width, "mlp_dim": rng.randint(8, 40), "num_attention_heads": rng.choice((1, 2, 4))}
    decoder |= {"num_multimask_outputs": rng.randint(2, 4), "iou_head_hidden_dim": rng.randint(6, 20), "iou_head_depth": rng.randint(2, 4)}
    if prefix == "Sam2":
        size, patch = 96, 16
        vision = sam2.encoder(sam2.hiera(mlp_ratio=rng.choice((1.5, 3.0))), fpn_hidden_size=width, num_feature_levels=3)
    else:
        patch, side = rng.choice((4, 8)), rng.randint(4, 8)
        size, layers = patch * side, rng.randint(1, 3)
        backbone = sam3.vit(image_size=size, patch_size=patch, pretrain_image_size=patch * rng.randint(2, side), window_size=rng.randint(2, 5), num_hidden_layers=layers, global_attn_indexes=[rng.randrange(layers)])
        maps = [[4 * side] * 2, [2 * side] * 2, [side] * 2]
        factors = [4.0, 2.0, 1.0, 0.5][: rng.choice((3, 4))]
        vision = transformers.Sam3VisionConfig(backbone_config=backbone, fpn_hidden_size=width, scale_factors=factors, backbone_feature_sizes=maps)
    prompt = {"hidden_size": width, "image_size": size, "patch_size": patch, "mask_input_channels": 4 * rng.randint(1, 4)}
    config = getattr(transformers, f"{prefix}Config")(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=decoder)
    inputs = pixels(rng, path, 3, size)
    inputs |= prompts(rng, path, len(inputs["pixel_values"]), size)
    return Case(path, f"{prefix}Model", config, inputs, "Drawn at random.", store(rng))


def followed(model: str, prefix: str, rng: Random, path: str) -> Case:
    """An object in a frame of a video, by points or by memory of other frames."""
    # Pointers must be wider than memory.
    remembers, batch = rng.random() < 0.5, rng.randint(1, 3)
    width = 128 if remembers else 64
    changes: Changes = {"num_maskmem": rng.randint(3, 6), "memory_fuser_num_layers": rng.randint(0, 2), "memory_attention_num_layers": rng.randint(1, 2)}
    changes |= {"memory_attention_num_attention_heads": rng.choice((1, 2)), "enable_occlusion_spatial_embedding": rng.random() < 0.5}
    size, of = 96, (64, 6, 6)
    if model == "edgetam_video":
        whole, side = rng.randint(0, 4), rng.choice((1, 2, 3))
        changes |= {"perceiver_resampler_num_latents": whole, "perceiver_resampler_num_latents_2d": side * side, "memory_attention_rope_k_sizes": [side, side]}
        changes["perceiver_resampler_num_layers"] = rng.randint(1, 2)
        config, of = sam2_video.edgetam(width, **changes), (whole + side * side, 64)
    elif model == "sam3_tracker_video":
        patch, side = rng.choice((4, 8)), rng.randint(4, 8)
        size, of = patch * side, (64, side, side)
        config = sam2_video.sam3_tracker(width, size=(size, patch), **changes)
    else:
        config = sam2_video.config(width=width, **changes)
    inputs: Changes = {"pixel_values": floats(f"{path}.pixels", (batch, 3, size, size), -2.0, 2.0)}
    frames, pointers = rng.randint(1, config.num_maskmem), rng.randint(1, 4)
    if remembers:
        inputs["maskmem_features"] = floats(f"{path}.memory", (batch, frames, *of), -1.0, 1.0)
        inputs["memory_offsets"] = np.array([[rng.randrange(config.num_maskmem) for _ in range(frames)] for _ in range(batch)], np.int64)
        inputs["object_pointers"] = floats(f"{path}.pointers", (batch, pointers, width), -1.0, 1.0)
        inputs["pointer_offsets"] = np.array([[rng.random() for _ in range(pointers)] for _ in range(batch)], np.float32)
    prompted = not remembers or rng.random() < 0.5
    if prompted:
        points = rng.randint(1, 3)
        inputs["input_points"] = floats(f"{path}.points", (batch, 1, points, 2), 0.0, float(size))
        inputs["input_labels"] = np.array([[[rng.randrange(2) for _ in range(points)]] for _ in range(batch)], np.int64)
    inputs["multimask_output"] = np.full(batch, rng.randrange(2), np.int64)
    inputs["is_mask_from_pts"] = np.full(batch, int(prompted), np.int64)
    within = partial(sam2_video.of_tensors, f"{prefix}Model")
    return Case(path, f"{prefix}Model", config, inputs, "Drawn at random.", store(rng), within=within)


def named(rng: Random, path: str) -> Case:
    """What texts name in frames of videos, and objects in them, of points or of memory of other frames."""
    batch, frames, length = rng.randint(1, 3), rng.randint(1, 4), rng.randint(2, 12)
    changes: Changes = {"num_maskmem": rng.randint(3, 6), "memory_fuser_num_layers": rng.randint(0, 2)}
    detector: Changes = {"decoder": {"num_layers": rng.randint(1, 3), "num_queries": rng.randint(1, 7), "hidden_act": rng.choice(ACTIVATIONS)}}
    detector |= {"encoder": {"num_layers": rng.randint(1, 2), "hidden_act": rng.choice(ACTIVATIONS)}}
    config = sam3_video.config(tracker=changes, **detector)
    inputs: Changes = {"pixel_values": floats(f"{path}.pixels", (batch, 3, 56, 56), -2.0, 2.0)}
    inputs |= {"input_ids": integers(f"{path}.ids", (batch, length), 1, 99), "attention_mask": np.ones((batch, length), np.int64)}
    inputs["attention_mask"][0, rng.randint(1, length) :] = 0
    inputs["maskmem_features"] = floats(f"{path}.memory", (batch, frames, 64, 7, 7), -1.0, 1.0)
    inputs["memory_offsets"] = np.array([[rng.randrange(changes["num_maskmem"]) for _ in range(frames)] for _ in range(batch)], np.int64)
    inputs["object_pointers"] = floats(f"{path}.pointers", (batch, 2, 128), -1.0, 1.0)
    inputs["pointer_offsets"] = np.array([[rng.random() for _ in range(2)] for _ in range(batch)], np.float32)
    inputs["multimask_output"] = np.full(batch, rng.randrange(2), np.int64)
    within = sam3_video.of_tensors
    return Case(path, "Sam3VideoModel", config, inputs, "Drawn at random.", store(rng), within=within)


def seen(rng: Random, path: str) -> Case:
    """Videos and texts of any lengths, some padded."""
    heads, kv, pooled = rng.choice((2, 4)), rng.choice((1, 2)), rng.choice((1, 2))
    network: Changes = {"embed_dim": 16 * rng.randint(1, 2), "depth": rng.randint(1, 3), "num_heads": rng.choice((1, 2)), "attn_pool_num_heads": pooled}
    network |= {"init_values": rng.choice((0.1, None)), "ref_feat_shape": [rng.randint(2, 9)] * 2, "mlp_ratio": rng.choice((1.5, 3.0))}
    network = {name: value for name, value in network.items() if value is not None}
    sizes: Changes = {"num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": rng.choice((4, 8)), "num_hidden_layers": rng.randint(1, 3)}
    sizes |= {"hidden_size": rng.randint(8, 30), "attention_bias": rng.random() < 0.5, "hidden_act": rng.choice(ACTIVATIONS)}
    count, frames = rng.randint(1, 3), rng.randint(2, 6)
    given = pe_video.videos(path, frames, rng.random() < 0.7, count)
    texts = text_batch(99, tuple(rng.randint(2, 9) for _ in range(rng.randint(1, 3))), "right", key=path)
    del texts["token_type_ids"]
    return Case(path, "PeVideoModel", pe_video.config(arguments=network, **sizes), {**texts, **given}, "Drawn at random.", store(rng))


def in_context(rng: Random, path: str) -> Case:
    patch, layers = rng.choice((2, 4)), rng.randint(2, 5)
    rows, columns, merge = rng.randint(2, 5), rng.randint(2, 6), rng.randrange(layers)
    chosen = sorted({rng.randint(merge, layers - 1) for _ in range(3)})
    sizes = heads_and_width(rng) | {"num_hidden_layers": layers, "image_size": [2 * rows * patch, columns * patch], "patch_size": patch}
    sizes |= {"pretrain_image_size": patch * rng.randint(2, 6), "decoder_hidden_size": rng.randint(2, 9), "merge_index": merge}
    sizes |= {"intermediate_hidden_state_indices": chosen, "hidden_act": rng.choice(ACTIVATIONS), "layer_norm_eps": rng.choice(EPSILONS)}
    config = transformers.SegGptConfig(**sizes, qkv_bias=rng.random() < 0.7)
    shape = (rng.randint(1, 3), 3, rows * patch, columns * patch)
    inputs = {name: floats(f"{path}.{name}", shape, -2.0, 2.0) for name in ("pixel_values", "prompt_pixel_values", "prompt_masks")}
    return Case(path, rng.choice(("SegGptModel", "SegGptForImageSegmentation")), config, inputs, "Drawn at random.", store(rng))


def encoder(rng: Random, **changes: Any) -> Changes:
    return heads_and_width(rng) | {"num_hidden_layers": 4, "mlp_ratio": rng.randint(1, 3)} | changes


def patches(rng: Random, path: str) -> Case:
    patch, side = rng.choice((4, 8)), rng.choice((4, 8))
    layout = {"image_size": patch * side, "patch_size": patch, "model_type": "dinov2"}
    sizes = {f"{name}_model_config": encoder(rng, **layout) for name in ("image", "patch", "fov")}
    width = 4 * rng.randint(2, 4)
    dims = {"fusion_hidden_size": width, "intermediate_hook_ids": [3, 1], "intermediate_feature_dims": [width, width], "patch_size": patch * side}
    dims |= {"scaled_images_feature_dims": [rng.randint(4, 12) for _ in range(3)], "merge_padding_value": rng.randint(0, 3), "num_fov_head_layers": rng.randint(1, 2)}
    config = transformers.DepthProConfig(**sizes, **dims, use_fov_model=rng.random() < 0.5)
    return Case(path, "DepthProForDepthEstimation", config, pixels(rng, path, 3, 4 * patch * side), "Drawn at random.", store(rng))


def dense(rng: Random, path: str) -> Case:
    patch = rng.choice((4, 7))
    layout = encoder(rng, image_size=patch * rng.randint(3, 6), patch_size=patch, out_indices=[1, 2, 3, 4], num_register_tokens=rng.randint(1, 4))
    layout |= {"reshape_hidden_states": False, "model_type": "tipsv2_vision_model", "apply_layernorm": rng.random() < 0.5}
    sizes = {"neck_hidden_sizes": [rng.randint(3, 12) for _ in range(4)], "fusion_hidden_size": rng.randint(4, 10), "num_depth_bins": rng.randint(2, 20)}
    config = transformers.Tipsv2DptConfig(backbone_config=layout, **sizes, num_labels=rng.randint(1, 6))
    head = rng.choice(("DepthEstimation", "SemanticSegmentation", "NormalEstimation", "DensePrediction"))
    images = pixels(rng, path, 3, patch * rng.randint(3, 7), patch * rng.randint(3, 7))
    return Case(path, f"Tipsv2DptFor{head}", config, images, "Drawn at random.", store(rng))


def detector(model: str, rng: Random, path: str) -> Case:
    heads, width = rng.choice((1, 2, 4)), 8 * rng.randint(1, 3)
    sizes = {"d_model": width, "encoder_hidden_dim": width, "decoder_in_channels": [width] * 3, "decoder_attention_heads": heads, "encoder_attention_heads": heads}
    sizes |= {"decoder_layers": rng.randint(2, 4), "num_queries": rng.randint(2, 9), "num_labels": rng.randint(1, 6), "encoder_layers": rng.randint(0, 2)}
    sizes |= {"decoder_ffn_dim": 2 * rng.randint(4, 20), "encoder_ffn_dim": rng.randint(8, 40)}
    if model == "deimv2":
        config, name = deimv2.config(**sizes, use_gateway=rng.random() < 0.5), "Deimv2ForObjectDetection"
    else:
        version = model[-2:].upper()
        config, name = pp_doclayout.config(version, **sizes), f"PPDocLayout{version}ForObjectDetection"
    images = pixels(rng, path, 3, 32 * rng.randint(2, 4), 32 * rng.randint(2, 4))
    return Case(path, name, config, images, "Drawn at random.", store(rng))


def video(rng: Random, path: str) -> Case:
    frames, high, wide = rng.randint(1, 5), rng.randint(2, 5), rng.randint(2, 5)
    rows, columns = rng.randint(1, 4), rng.randint(1, 4)
    sizes = heads_and_width(rng) | {"num_frames": frames, "image_size": [rows * high, columns * wide], "tubelet_size": [1, high, wide]}
    sizes |= {"intermediate_size": sizes["num_attention_heads"] * rng.randint(2, 12), "num_spatial_layers": rng.randint(1, 3), "num_temporal_layers": rng.randint(1, 3)}
    sizes |= {"num_auxiliary_layers": rng.randint(0, 2), "attn_logit_softcapping": rng.choice((1.0, 50.0)), "qkv_bias": rng.random() < 0.7, "num_labels": rng.randint(1, 6)}
    config = transformers.VideoPrismVisionConfig(**sizes, hidden_act=rng.choice(ACTIVATIONS), layer_norm_eps=rng.choice(EPSILONS))
    videos = {"pixel_values_videos": floats(path, (rng.randint(1, 3), frames, 3, rows * high, columns * wide), -2.0, 2.0)}
    head = rng.choice(("VisionModel", "VideoModel", "ForVideoClassification"))
    return Case(path, f"VideoPrism{head}", config, videos, "Drawn at random.", store(rng))


DRAWN = {
    "sam2": partial(promptable, "Sam2"),
    "sam3_tracker": partial(promptable, "Sam3Tracker"),
    "sam2_video": partial(followed, "sam2_video", "Sam2Video"),
    "edgetam_video": partial(followed, "edgetam_video", "EdgeTamVideo"),
    "sam3_tracker_video": partial(followed, "sam3_tracker_video", "Sam3TrackerVideo"),
    "sam3_video": named,
    "pe_video": seen,
    "seggpt": in_context,
    "depth_pro": patches,
    "tipsv2_dpt": dense,
    "deimv2": partial(detector, "deimv2"),
    "pp_doclayout_v3": partial(detector, "pp_doclayout_v3"),
    "pp_doclayout_v4": partial(detector, "pp_doclayout_v4"),
    "videoprism_vision_model": video,
}
