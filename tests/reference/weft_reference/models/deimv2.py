"""DEIMv2: D-FINE with SwiGLU and RMS norms on HGNet V2, its lite encoder, and DINOv3 joined with details of convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import RTDetrImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.models import d_fine
from weft_reference.models.pp_ocr import hgnet
from weft_reference.models.rt_detr import images
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("deimv2",)


def config(**changes: Any) -> transformers.PreTrainedConfig:
    sizes = d_fine.tiny() | {"tie_word_embeddings": True}
    backbone = hgnet(out_features=["stage2", "stage3", "stage4"])
    return transformers.Deimv2Config(**({"backbone_config": backbone} | sizes | changes))


def vit() -> transformers.PreTrainedConfig:
    sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24, "patch_size": 16}
    return transformers.DINOv3ViTConfig(**sizes, num_register_tokens=2, out_indices=[2, 3, 4], apply_layernorm=True)


def case(name: str, notes: str, size: tuple[int, int] = (64, 96), store: Store | None = None, **changes: Any) -> Case:
    return Case(f"deimv2/{name}", "Deimv2ForObjectDetection", config(**changes), images(*size), notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("object-detection", "Two images, three classes.")
    other = {"d_model": 12, "decoder_attention_heads": 3, "decoder_n_points": 2, "num_denoising": 0, "use_gateway": False}
    yield case(
        "projected",
        "A decoder of another width, no gates; narrow pyramids of shared heads without a last convolution, other functions.",
        (96, 64),
        **other,
        hidden_expansion=0.5,
        depth_mult=0.34,
        encoder_has_trailing_conv=False,
        share_bbox_head=True,
        activation_function="relu",
        decoder_activation_function="gelu",
    )
    lite = {"encoder_type": "lite", "encoder_in_channels": [16], "decoder_in_channels": [16, 16], "num_feature_levels": 2, "decoder_n_points": [3, 2]}
    yield case("lite", "Two maps of the backbone's last.", (128, 192), backbone_config=hgnet(out_features=["stage4"]), **lite)
    yield case("vision-transformer", "DINOv3, whose maps are joined with details.", backbone_config=vit(), spatial_tuning_adapter_inplanes=4)
    yield case("file", "The names of published checkpoints.", store=stores.whole, encoder_ffn_dim=8)
    made = config(num_labels=len(LABELS), num_queries=5)
    size = {"height": 64, "width": 96}
    yield from tasks(made, "deimv2", "Deimv2", 0.5, lambda **_: RTDetrImageProcessorPil(size=size))
