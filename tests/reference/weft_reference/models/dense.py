"""Depth and segmentation with necks and heads on backbones: Depth Anything, DPT, GLPN, UPerNet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import segformer
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.depth import depth
from weft_reference.vision_tasks.segmentation import semantic

MODELS = ("depth_anything", "dpt", "glpn", "upernet")
VIT = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2}
NECK = {"neck_hidden_sizes": [6, 8, 10, 12], "fusion_hidden_size": 8}


def case(
    name: str, model_class: str, config: PreTrainedConfig, size: tuple[int, int], notes: str, store: Store | None = None
) -> Case:
    return Case(name, model_class, config, {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield from depth_anything()
    yield from dpt()
    yield from glpn()
    yield from upernet()


def depth_anything() -> Iterator[Case | VisionTaskCase]:
    def config(backbone: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
        layout = VIT | {"image_size": 28, "patch_size": 7, "out_indices": [1, 2, 3, 4], "reshape_hidden_states": False}
        sizes = NECK | {"patch_size": 7, "reassemble_hidden_size": 16, "head_hidden_size": 6}
        return transformers.DepthAnythingConfig(backbone_config=transformers.Dinov2Config(**(layout | (backbone or {}))), **(sizes | changes))

    def one(name: str, notes: str, size: tuple[int, int] = (28, 28), store: Store | None = None, **changes: Any) -> Case:
        return case(f"depth_anything/{name}", "DepthAnythingForDepthEstimation", config(**changes), size, notes, store)

    yield one("relative", "Pictures of the configuration's size.")
    yield one("wide", "Pictures of other and odd rows and columns.", size=(23, 50))
    metric = {"depth_estimation_type": "metric", "max_depth": 20}
    plain = {"apply_layernorm": False, "out_indices": [2, 3], "num_hidden_layers": 3}
    two = {"neck_hidden_sizes": [6, 12], "reassemble_factors": [2, 0.5]}
    yield one("metric", "Metres; two maps of three layers, which are not normalised.", size=(35, 42), backbone=plain, **metric, **two)
    yield one("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
    processor = transformers.DPTImageProcessorPil(size={"height": 28, "width": 28}, keep_aspect_ratio=True, ensure_multiple_of=7)
    yield depth("depth_anything", "DepthAnythingForDepthEstimation", config(), processor)


def dpt() -> Iterator[Case | VisionTaskCase]:
    def config(**changes: Any) -> PreTrainedConfig:
        sizes = VIT | NECK | {"intermediate_size": 24, "image_size": 24, "patch_size": 8, "backbone_out_indices": [0, 1, 2, 3]}
        return transformers.DPTConfig(**(sizes | changes))

    def one(name: str, head: str, notes: str, size: tuple[int, int] = (24, 24), store: Store | None = None, **changes: Any) -> Case:
        return case(f"dpt/{name}", f"DPT{head}", config(**changes), size, notes, store)

    estimation, places = "ForDepthEstimation", "ForSemanticSegmentation"
    yield one("base", "Model", "Hidden states and the pooled output.", pooler_output_size=10)
    yield one("depth", estimation, "The class token is projected with each patch.")
    yield one("other-size", estimation, "Larger pictures; the class token is added.", size=(43, 40), readout_type="add", hidden_act="relu")
    normed = {"use_batch_norm_in_fusion_residual": True, "readout_type": "ignore", "qkv_bias": False}
    fewer = {"backbone_out_indices": [0, 2], "neck_hidden_sizes": [6, 12], "reassemble_factors": [2, 1]}
    yield one("batch-norm", estimation, "Batch normalisation, no readout; two maps of three layers.", num_hidden_layers=4, **normed, **fewer)
    yield one("projection", estimation, "A convolution of 256 channels before the others.", add_projection=True, **fewer, **(normed | {"fusion_hidden_size": 256, "use_bias_in_fusion_residual": True}))
    yield one("semantic-segmentation", places, "Four classes of places.", num_labels=4, use_batch_norm_in_fusion_residual=True)
    yield one("file", places, "model.safetensors as save_pretrained writes it; no auxiliary head.", store=stores.whole, num_labels=4, use_auxiliary_head=False)
    processor = transformers.DPTImageProcessorPil(size={"height": 24, "width": 24})
    yield depth("dpt", "DPTForDepthEstimation", config(readout_type="add"), processor)
    yield semantic("dpt", "DPTForSemanticSegmentation", config(readout_type="add", use_batch_norm_in_fusion_residual=True), processor)


def glpn() -> Iterator[Case | VisionTaskCase]:
    def config(**changes: Any) -> PreTrainedConfig:
        return transformers.GLPNConfig(**(segformer.sizes("segformer") | {"decoder_hidden_size": 12} | changes))

    def one(name: str, head: str, notes: str, size: tuple[int, int] = (24, 24), store: Store | None = None, **changes: Any) -> Case:
        return case(f"glpn/{name}", f"GLPN{head}", config(**changes), size, notes, store)

    estimation = "ForDepthEstimation"
    yield one("base", "Model", "Two images of odd rows and columns.", size=(22, 37))
    yield one("depth", estimation, "The second stage is as wide as the decoder.", size=(24, 40))
    yield one("deeper", estimation, "Another largest depth, function and width.", max_depth=80, hidden_act="relu", decoder_hidden_size=10)
    yield one("file", estimation, "model.safetensors as save_pretrained writes it.", store=stores.whole)
    yield depth("glpn", "GLPNForDepthEstimation", config(), transformers.GLPNImageProcessorPil(size_divisor=8))


def upernet() -> Iterator[Case | VisionTaskCase]:
    stages = [f"stage{number}" for number in range(1, 5)]
    layout = {"hidden_sizes": [4, 6, 8, 10], "depths": [1, 1, 2, 1], "out_features": stages}
    resnet = transformers.ResNetConfig(embedding_size=4, layer_type="basic", **layout)
    convnext = transformers.ConvNextConfig(**layout, layer_scale_init_value=0.5)

    swin = transformers.SwinConfig(image_size=64, embed_dim=4, depths=[1, 2, 1, 1], num_heads=[1, 1, 2, 2], window_size=4, out_features=stages)

    def config(backbone: PreTrainedConfig = convnext, **changes: Any) -> PreTrainedConfig:
        sizes = {"hidden_size": 8, "auxiliary_channels": 6, "num_labels": 4}
        return transformers.UperNetConfig(backbone_config=backbone, **(sizes | changes))

    def one(name: str, notes: str, size: tuple[int, int], store: Store | None = None, **changes: Any) -> Case:
        return case(f"upernet/{name}", "UperNetForSemanticSegmentation", config(**changes), size, notes, store)

    yield one("convnext", "A ConvNeXT; pictures of odd rows and columns.", (70, 101))
    yield one("resnet", "A ResNet; other grids, no auxiliary head.", (64, 90), backbone=resnet, pool_scales=[1, 3], use_auxiliary_head=False)
    yield one("swin", "A Swin; pictures of another size than the configuration's.", (70, 101), backbone=swin)
    yield one("file", "model.safetensors as save_pretrained writes it.", (64, 64), store=stores.whole, hidden_size=4, auxiliary_channels=3)
    yield one("file-swin", "The names of published checkpoints.", (50, 64), store=stores.whole, backbone=swin, hidden_size=4, use_auxiliary_head=False)
    processor = transformers.SegformerImageProcessorPil(size={"height": 64, "width": 72})
    yield semantic("upernet", "UperNetForSemanticSegmentation", config(use_auxiliary_head=False), processor)
