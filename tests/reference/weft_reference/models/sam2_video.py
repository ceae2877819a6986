"""SAM 2, EdgeTAM and SAM 3's tracker on videos: an object in a frame, of its memory of earlier frames and what points, boxes and masks say of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig
from transformers.utils import ModelOutput

from weft_reference import stores, timm_networks
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import floats
from weft_reference.models import sam3, timm
from weft_reference.models.promptable import boxes, points
from weft_reference.models.sam2 import encoder, hiera
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.tracking import tracked

MODELS = ("sam2_video", "edgetam_video", "sam3_tracker_video")
SIZE, SIDE, WIDTH, MEMORY = 96, 6, 128, 64
FRAME = 40
# EdgeTAM's latents of a whole map, and of each of its windows.
LATENTS = 5, 9


def config(
    decoder: dict[str, Any] | None = None,
    width: int = WIDTH,
    prefix: str = "Sam2Video",
    vision: PreTrainedConfig | None = None,
    size: tuple[int, int] = (SIZE, 16),
    **changes: Any,
) -> PreTrainedConfig:
    """Frames of six by six places; pointers of two tokens, since memory is always 64 wide."""
    maps = {"backbone_feature_sizes": [[24, 24], [12, 12], [6, 6]], "fpn_hidden_size": width}
    pixels, patch = size
    side = pixels // patch
    prompts = {"hidden_size": width, "image_size": pixels, "patch_size": patch, "mask_input_channels": 8}
    masks = {"hidden_size": width, "mlp_dim": 32, "num_attention_heads": 2, "iou_head_hidden_dim": 12}
    mlp = "mlp_hidden_size" if prefix == "EdgeTamVideo" else "feed_forward_hidden_size"
    attention = {"hidden_size": width, "num_layers": 2, mlp: 24, "rope_feat_sizes": [side, side]}
    memory = {"num_maskmem": 4, "memory_fuser_intermediate_dim": 24, "memory_fuser_layer_scale_init_value": 0.5}
    memory |= {"mask_downsampler_embed_dim": width, "memory_fuser_embed_dim": width, "memory_encoder_hidden_size": width}
    return getattr(transformers, f"{prefix}Config")(
        vision_config=vision or encoder(hiera(), **maps),
        prompt_encoder_config=prompts,
        mask_decoder_config=masks | (decoder or {}),
        image_size=pixels,
        **({f"memory_attention_{name}": value for name, value in attention.items()} | memory | changes),
    )


def edgetam(width: int = WIDTH, **changes: Any) -> PreTrainedConfig:
    """Latents of a whole map and of its nine windows."""
    timm_networks.load()
    whole, windows = LATENTS
    latents = {"num_latents": whole, "num_latents_2d": windows, "mlp_intermediate_size": 20}
    sizes = {f"perceiver_resampler_{name}": value for name, value in latents.items()}
    sizes |= {"memory_attention_rope_k_sizes": [3, 3]}
    return config(width=width, prefix="EdgeTamVideo", vision=timm.encoder(fpn_hidden_size=width), **(sizes | changes))


def sam3_tracker(width: int = WIDTH, size: tuple[int, int] = (56, 8), **changes: Any) -> PreTrainedConfig:
    """Frames of seven by seven places, whose masks are of other sizes than frames."""
    pixels, patch = size
    vision = transformers.Sam3VisionConfig(backbone_config=sam3.vit(image_size=pixels, patch_size=patch), fpn_hidden_size=width)
    return config(width=width, prefix="Sam3TrackerVideo", vision=vision, size=size, **changes)


def memory(frames: int = 3, pointers: int = 2, of: tuple[int, ...] = (MEMORY, SIDE, SIDE)) -> Inputs:
    """Of two objects: frames, of which the second object has one less, and pointers of such frames."""
    offsets = np.array([[0, 3, 1], [0, 2, -1]], np.int64)[:, :frames]
    places = np.array([[1.0, 0.2], [0.6, -1.0]], np.float32)[:, :pointers]
    return {
        "maskmem_features": floats("memory", (2, frames, *of), -1.0, 1.0),
        "memory_offsets": offsets,
        "object_pointers": floats("pointers", (2, pointers, WIDTH), -1.0, 1.0),
        "pointer_offsets": places,
    }


def step(model: Any, return_dict: bool = True, **given: torch.Tensor) -> ModelOutput:
    """One frame of each object, by the reference's own methods; what its session would pick of memory is given."""
    rows = [{name: value[row : row + 1] for name, value in given.items()} for row in range(len(given["pixel_values"]))]
    found = [one(model, row) for row in rows]
    return ModelOutput({name: torch.cat([row[name] for row in found]) for name in found[0]})


def one(model: Any, row: dict[str, torch.Tensor], features: dict[str, Any] | None = None) -> dict[str, torch.Tensor]:
    """One object in a frame, of its pixels, or of features of it."""
    kind = f"{type(model).__name__.removesuffix('Model')}InferenceSession"
    session = getattr(sys.modules[type(model).__module__], kind)(video=row["pixel_values"], dtype=torch.float32)
    if features:
        session.cache.cache_vision_features(FRAME, features)
    session.processed_frames = {FRAME: session.processed_frames[0]}
    session.obj_id_to_idx(1)
    offsets = row["memory_offsets"][0].tolist() if "memory_offsets" in row else []
    frames = [(offset, remembered(model, row["maskmem_features"][:, index])) for index, offset in enumerate(offsets) if offset >= 0]
    places = row["pointer_offsets"][0].tolist() if "pointer_offsets" in row else []
    pointers = [(place, row["object_pointers"][:, index : index + 1]) for index, place in enumerate(places) if place >= 0]
    chosen = ([place for place, _ in pointers], [pointer for _, pointer in pointers], 2)
    target, prompts = row.get("mask_inputs"), prompted(row)
    with (
        mock.patch.object(model, "_gather_memory_frame_outputs", lambda *_, **__: frames),
        mock.patch.object(model, "_get_object_pointers", lambda *_, **__: chosen),
        mock.patch.object(model, "_use_multimask", lambda *_: bool(row.get("multimask_output", torch.ones(1))[0])),
    ):
        found = model._run_single_frame_inference(
            session,
            frame_idx=FRAME,
            obj_idx=0,
            batch_size=1,
            is_init_cond_frame=not frames,
            point_inputs=prompts,
            mask_inputs=target,
            reverse=False,
            prev_sam_mask_logits=row.get("input_masks"),
            **({"run_mem_encoder": True} if hasattr(model, "spatial_perceiver") else {}),
        )
    features = found.get("maskmem_features")
    if features is None:
        features = encoded(model, session, found, bool(row.get("is_mask_from_pts", torch.zeros(1))[0]))
    outputs = {"pred_masks": found["pred_masks"], "object_score_logits": found["object_score_logits"].reshape(1, 1, 1)}
    return outputs | {"object_pointer": found["object_pointer"].flatten(1), "maskmem_features": features}


def encoded(model: Any, session: Any, found: dict[str, torch.Tensor], sharp: bool) -> torch.Tensor:
    """The memory of the frame, which `forward` encodes of all objects together."""
    with mock.patch.object(torch.Tensor, "to", whole(torch.Tensor.to)):
        frame = model._prepare_vision_features(session, FRAME, 1)[0][-1]
        features, _ = model._encode_new_memory(frame, found["high_res_masks"], found["object_score_logits"], sharp)
    return features.permute(1, 2, 0).reshape(1, MEMORY, *model.backbone_feature_sizes[-1])


def whole(to: Any) -> Any:
    """Memory in single precision: what the session keeps of it is rounded to bfloat16."""
    return lambda tensor, *arguments, **named: tensor if torch.bfloat16 in arguments else to(tensor, *arguments, **named)


def remembered(model: Any, features: torch.Tensor) -> dict[str, torch.Tensor]:
    if hasattr(model, "spatial_perceiver"):
        map_size = (1, MEMORY, *model.backbone_feature_sizes[-1])
        positions = model.memory_encoder.position_encoding(map_size, features.device, features.dtype)
        return {"maskmem_features": features, "maskmem_pos_enc": model.spatial_perceiver(torch.zeros(map_size), positions)[1]}
    positions = model.memory_encoder.position_encoding(features.shape, features.device, features.dtype)
    return {"maskmem_features": features.flatten(2).permute(2, 0, 1), "maskmem_pos_enc": positions.flatten(2).permute(2, 0, 1)}


def prompted(row: dict[str, torch.Tensor]) -> dict[str, torch.Tensor] | None:
    """Points of an object; the corners of a box are points, too, as the reference's processor gives them."""
    if "input_points" not in row:
        return None
    return {"point_coords": row["input_points"], "point_labels": row["input_labels"]}


@contextmanager
def of_tensors(model: str) -> Iterator[None]:
    with mock.patch.object(getattr(transformers, model), "forward", step):
        yield


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield from cases("sam2_video", "Sam2Video", config, SIZE, (MEMORY, SIDE, SIDE))
    yield from tracking()
    yield from cases("edgetam_video", "EdgeTamVideo", edgetam, SIZE, (sum(LATENTS), MEMORY))
    yield from resampled()
    yield from cases("sam3_tracker_video", "Sam3TrackerVideo", sam3_tracker, 56, (MEMORY, 7, 7))


def tracking() -> Iterator[VisionTaskCase]:
    few = {"num_maskmem": 3, "max_object_pointers_in_encoder": 4, "max_cond_frame_num": 2, "memory_attention_num_layers": 1}
    decoder = {"num_attention_heads": 4, "num_multimask_outputs": 2, "dynamic_multimask_via_stability": False}
    thresholds = (9.974, 0.0, 7.395, 10.705, 5.54, 4.606, 8.745, 0.0, 9.154)
    yield tracked("sam2_video", "Sam2VideoModel", config(decoder, **few), SIZE, thresholds)
    # Of objects by masks beside others, scores of the reference have axes that do not fit each other.
    alone: tuple[float | None, ...] = (0.826, -6.081, -1.62, None, 2.591, 1.687, 1.506, None, 0.826)
    yield tracked("edgetam_video", "EdgeTamVideoModel", edgetam(decoder=decoder, **few), SIZE, alone)
    # Of the fourth, scores move by 1.6e-4 where pixels do by 1e-6, since memory is rounded to bfloat16.
    rounded: tuple[float | None, ...] = (2.077, -7.476, 2.083, None, 0.474, 3.359, 1.189, 0.0, 0.212)
    made = sam3_tracker(decoder=decoder | {"num_attention_heads": 8}, **few)
    yield tracked("sam3_tracker_video", "Sam3TrackerVideoModel", made, 56, rounded, transformers.Sam3TrackerVideoProcessor)


def flags(multimask: int, prompted: int) -> Inputs:
    return {"multimask_output": np.full(2, multimask, np.int64), "is_mask_from_pts": np.full(2, prompted, np.int64)}


def case(model: str, prefix: str, name: str, notes: str, made: PreTrainedConfig, given: Inputs, store: Store | None = None) -> Case:
    size = made.image_size
    frames = {"pixel_values": floats("pixels", (2, 3, size, size), -2.0, 2.0)}
    return Case(f"{model}/{name}", f"{prefix}Model", made, {**frames, **given}, notes, store, within=partial(of_tensors, f"{prefix}Model"))


def cases(model: str, prefix: str, make: Any, size: int, of: tuple[int, ...]) -> Iterator[Case]:
    """Each kind of prompt and memory; frames of this size, memory of a frame of this shape."""

    def one(name: str, notes: str, given: Inputs, store: Store | None = None, **changes: Any) -> Case:
        return case(model, prefix, name, notes, make(**changes), given, store)

    prompts = {"input_points": points(size)["input_points"][:, :1], "input_labels": np.array([[[1, 0]], [[1, -10]]], np.int64)}
    corners = boxes(size)["input_boxes"][:, :1].reshape(2, 1, 2, 2)
    box = {"input_points": corners, "input_labels": np.array([[[2, 3]], [[2, 3]]], np.int64)}
    mask = {"mask_inputs": (floats("mask", (2, 1, size, size), -1.0, 1.0) > 0.2).astype(np.float32)}
    mask["mask_inputs"][1] = 0.0
    edge = 4 * make().prompt_encoder_config.image_size // make().prompt_encoder_config.patch_size
    logits = {"input_masks": floats("logits", (2, 1, edge, edge), -8.0, 8.0)}
    yield one("points", "The first frame of objects, by points.", {**prompts, **flags(1, 1)})
    yield one("box", "The first frame of objects, by corners of boxes; one mask.", {**box, **flags(0, 1)})
    yield one("mask", "The first frame of objects, by masks, of which one is empty.", {**mask, **flags(1, 1)})
    seen = partial(memory, of=of)
    yield one("memory", "A frame without prompts, of three and two frames' memory, two pointers and one.", {**seen(), **flags(1, 0)})
    yield one("correction", "Points on a frame with memory; logits of masks.", {**seen(), **prompts, **logits, **flags(0, 1)})
    decoder = {"dynamic_multimask_via_stability": False, "num_multimask_outputs": 2}
    mlp = "mlp" if prefix == "EdgeTamVideo" else "feed_forward"
    other = {"memory_attention_num_attention_heads": 2, "memory_attention_downsample_rate": 2, "mask_downsampler_stride": 4}
    other |= {"mask_downsampler_kernel_size": 7, "mask_downsampler_padding": 3, "memory_fuser_num_layers": 1, "num_maskmem": 5}
    other |= {"memory_fuser_kernel_size": 5, "memory_fuser_padding": 2, "sigmoid_scale_for_mem_enc": 15.0, "sigmoid_bias_for_mem_enc": -5.0}
    other |= {"enable_occlusion_spatial_embedding": False, "enable_temporal_pos_encoding_for_object_pointers": False}
    other |= {f"memory_attention_{mlp}_hidden_act": "gelu", "memory_fuser_hidden_act": "relu", "mask_downsampler_hidden_act": "relu"}
    yield one("other-memory", "Heads half as wide; strides of 4; no embeddings of time or occlusion.", {**seen(), **flags(0, 0)}, decoder=decoder, **other)
    yield one("one-frame", "Memory of one frame.", {**seen(1, 1), **flags(1, 0)})
    yield one("file", "model.safetensors as save_pretrained writes it.", {**prompts, **flags(1, 1)}, stores.whole, width=MEMORY)


def resampled() -> Iterator[Case]:
    """EdgeTAM's memory as latents of one kind alone, and in heads."""

    def one(name: str, notes: str, latents: int, **perceiver: Any) -> Case:
        made = edgetam(**{f"perceiver_resampler_{key}": value for key, value in perceiver.items()})
        given = {**memory(of=(latents, MEMORY)), **flags(1, 0)}
        return case("edgetam_video", "EdgeTamVideo", name, notes, made, given)

    yield one("latents-of-windows", "No latents of the whole map; heads half as wide, one layer.", 9, num_latents=0, num_layers=1, num_attention_heads=2, attention_head_dim=32)
