"""Sapiens2: hidden states, backbones, and every head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats

MODELS = ("sapiens2",)
ROOTS = MODELS
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "patch_size": 4,
    "image_size": [16, 24],
    "num_register_tokens": 2,
    "num_key_value_attention_heads": 2,
    "num_first_full_attention_layers": 1,
    "num_last_full_attention_layers": 1,
}
TRANSPOSED = {"upsample_out_channels": [6, 5], "conv_out_channels": [4, 3], "conv_kernel_sizes": [1, 1]}
SHUFFLED = {"upsample_out_channels": [6, 5], "upsample_kernel_size": 3, "use_pixel_shuffle": True, "conv_out_channels": [4], "conv_kernel_size": 3}
SCALED = SHUFFLED | {"scale_conv_out_channels": [5, 4], "scale_conv_kernel_size": 3, "scale_final_hidden_sizes": [6, 5]}


def goldens() -> Iterator[Case]:
    def one(
        name: str, head: str, notes: str, layers: dict[str, Any] | None = None, store: Store | None = None, size: tuple[int, int] = (16, 24), **changes: Any
    ) -> Case:
        made = transformers.Sapiens2HeadConfig(**layers) if layers else None
        config = transformers.Sapiens2Config(**(SIZES | changes), head_config=made)
        pixels = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0)}
        return Case(f"sapiens2/{name}", f"Sapiens2{head}", config, pixels, notes, store)

    yield one("base", "Model", "Images of other rows and columns; fewer key heads in the middle layer.", size=(12, 28))
    plain = {"query_bias": False, "key_bias": False, "value_bias": False, "proj_bias": False, "mlp_bias": False, "use_qk_norm": False}
    yield one("plain", "Model", "No biases, no norms of heads, no gates.", **plain, use_gated_mlp=False, num_key_value_heads_per_layer=[1, 4, 2])
    yield from backbone("sapiens2", "Sapiens2", SIZES, (16, 24))
    yield one("segmentation", "ForSemanticSegmentation", "Transposed convolutions.", TRANSPOSED, num_labels=3)
    yield one("pose", "ForPoseEstimation", "As many heatmaps as keypoints.", TRANSPOSED, num_labels=5)
    yield one("normals", "ForNormalEstimation", "Convolutions and pixel shuffles.", SHUFFLED, num_labels=3)
    yield one("matting", "ForImageMatting", "Colours and mattes.", SHUFFLED, num_labels=4)
    yield one("pointmap", "ForPointmapEstimation", "Points and their scale.", SCALED, num_labels=3)
    yield one("pointmap-unscaled", "ForPointmapEstimation", "Points alone.", SHUFFLED, num_labels=3)
    yield one("file", "ForSemanticSegmentation", "model.safetensors as save_pretrained writes it.", TRANSPOSED, stores.whole, num_labels=3)
    yield one("pointmap-file", "ForPointmapEstimation", "As save_pretrained writes it.", SCALED, stores.whole, num_labels=3)
    yield one("normals-file", "ForNormalEstimation", "As save_pretrained writes it.", SHUFFLED, stores.whole, num_labels=3)
    yield one("matting-file", "ForImageMatting", "As save_pretrained writes it.", SHUFFLED, stores.whole, num_labels=4)
    yield one("pose-file", "ForPoseEstimation", "As save_pretrained writes it.", TRANSPOSED, stores.whole, num_labels=5)
