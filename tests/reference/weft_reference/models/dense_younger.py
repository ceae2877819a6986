"""Dense prediction on vision transformers: Depth Pro, SegGPT, TIPSv2 DPT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats

MODELS = ("depth_pro", "seggpt", "tipsv2_dpt")
VIT = {"hidden_size": 16, "num_attention_heads": 2, "mlp_ratio": 2, "layerscale_value": 0.5}


def pixels(*size: int) -> Any:
    return {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}


def goldens() -> Iterator[Case]:
    yield from depth_pro()
    yield from seggpt()
    yield from tipsv2_dpt()


def depth_pro() -> Iterator[Case]:
    def config(**changes: Any) -> PreTrainedConfig:
        encoder = VIT | {"image_size": 32, "patch_size": 4, "num_hidden_layers": 3, "model_type": "dinov2"}
        small = encoder | {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 3}
        sizes = {"image_model_config": small, "patch_model_config": encoder, "fov_model_config": small, "patch_size": 32}
        dims = {"fusion_hidden_size": 8, "intermediate_hook_ids": [2, 0], "intermediate_feature_dims": [8, 8], "merge_padding_value": 1}
        scales = {"scaled_images_ratios": [0.25, 0.5, 1.0], "scaled_images_feature_dims": [12, 10, 6]}
        return transformers.DepthProConfig(**(sizes | dims | scales | changes))

    def one(name: str, head: str, notes: str, side: int = 128, store: Store | None = None, **changes: Any) -> Case:
        return Case(f"depth_pro/{name}", f"DepthPro{head}", config(**changes), pixels(side, side), notes, store)

    yield one("base", "Model", "Three sizes of images, two inner layers.")
    yield one("depth", "ForDepthEstimation", "The last of the feature maps is not projected.")
    normed = {"use_batch_norm_in_fusion_residual": True, "use_bias_in_fusion_residual": False, "num_fov_head_layers": 1}
    two = {"scaled_images_ratios": [0.5, 1.0], "scaled_images_overlap_ratios": [0.0, 0.5], "scaled_images_feature_dims": [10, 6]}
    fewer = {"intermediate_hook_ids": [1], "intermediate_feature_dims": [6], "merge_padding_value": 3}
    yield one("field-of-view", "ForDepthEstimation", "The field of view; batch normalisation, two sizes, patches that overlap more.", 64, use_fov_model=True, **normed, **two, **fewer)
    yield one("file", "ForDepthEstimation", "model.safetensors as save_pretrained writes it.", 128, stores.whole, use_fov_model=True)


def seggpt() -> Iterator[Case]:
    def config(**changes: Any) -> PreTrainedConfig:
        sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "image_size": [48, 24], "patch_size": 4, "mlp_dim": 20}
        rest = {"pretrain_image_size": 16, "decoder_hidden_size": 6, "merge_index": 1, "intermediate_hidden_state_indices": [1, 3]}
        return transformers.SegGptConfig(**(sizes | rest | changes))

    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        made = config(**changes)
        height, width = made.image_size
        shape = (2, 3, height // 2, width)
        prompts = {name: floats(name, shape, -2.0, 2.0) for name in ("prompt_pixel_values", "prompt_masks")}
        return Case(f"seggpt/{name}", f"SegGpt{head}", made, pixels(*shape[2:]) | prompts, notes, store)

    yield one("base", "Model", "Positions of four by four patches at twelve by six.")
    yield one("segmentation", "ForImageSegmentation", "Masks; other rows and columns.", image_size=[32, 40])
    plain = {"qkv_bias": False, "merge_index": 0, "hidden_act": "relu", "mlp_dim": None}
    yield one("plain", "ForImageSegmentation", "No biases, positions as they are; images and masks are one from the first layer on.", image_size=[16, 16], **plain)
    yield one("file", "ForImageSegmentation", "model.safetensors as save_pretrained writes it.", stores.whole)


def tipsv2_dpt() -> Iterator[Case]:
    def config(backbone: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
        layout = VIT | {"image_size": 28, "patch_size": 7, "num_hidden_layers": 4, "out_indices": [1, 2, 3, 4], "num_register_tokens": 2}
        layout |= {"reshape_hidden_states": False, "model_type": "tipsv2_vision_model"}
        sizes = {"neck_hidden_sizes": [6, 8, 10, 12], "fusion_hidden_size": 8, "num_depth_bins": 12}
        return transformers.Tipsv2DptConfig(backbone_config=layout | (backbone or {}), **(sizes | changes))

    def one(name: str, head: str, notes: str, size: tuple[int, int] = (28, 28), store: Store | None = None, **changes: Any) -> Case:
        return Case(f"tipsv2_dpt/{name}", f"Tipsv2DptFor{head}", config(**changes), pixels(*size), notes, store)

    yield one("depth", "DepthEstimation", "Images of the configuration's size.")
    other = {"readout_activation": "relu", "depth_decoder_activation": "gelu", "min_depth": 0.5, "max_depth": 4.0}
    two = {"neck_hidden_sizes": [6, 12], "reassemble_factors": [2, 0.5]}
    plain = {"apply_layernorm": False, "out_indices": [2, 3], "num_hidden_layers": 3}
    yield one("wide", "DepthEstimation", "Other rows and columns; two maps of states that are not normalised.", (35, 56), backbone=plain, **other, **two)
    yield one("segmentation", "SemanticSegmentation", "Four classes.", (42, 28), num_labels=4)
    yield one("normals", "NormalEstimation", "Normals.")
    yield one("dense", "DensePrediction", "All three.", num_labels=3)
    yield one("file", "DepthEstimation", "model.safetensors as save_pretrained writes it.", store=stores.whole)
