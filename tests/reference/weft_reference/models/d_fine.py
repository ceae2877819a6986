"""D-FINE: a backbone of HGNet V2, distributions of where edges are, points by level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import RTDetrImageProcessorPil

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.models.pp_ocr import hgnet
from weft_reference.models.rt_detr import images
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("d_fine",)


def tiny() -> dict[str, Any]:
    return {
        "encoder_hidden_dim": 16,
        "encoder_in_channels": [10, 12, 16],
        "encoder_ffn_dim": 20,
        "encoder_attention_heads": 2,
        "d_model": 16,
        "num_queries": 6,
        "decoder_in_channels": [16, 16, 16],
        "decoder_ffn_dim": 24,
        "decoder_n_points": [3, 2, 4],
        "decoder_layers": 3,
        "decoder_attention_heads": 4,
        "num_labels": 3,
        "num_denoising": 2,
        "max_num_bins": 8,
        "lqe_hidden_dim": 6,
        "tie_word_embeddings": False,
    }


def config(**changes: Any) -> transformers.PreTrainedConfig:
    backbone = hgnet(out_features=["stage2", "stage3", "stage4"])
    return transformers.DFineConfig(**({"backbone_config": backbone} | tiny() | changes))


def case(name: str, notes: str, size: tuple[int, int] = (64, 96), store: Store | None = None, **changes: Any) -> Case:
    return Case(f"d_fine/{name}", "DFineForObjectDetection", config(**changes), images(*size), notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("object-detection", "Two images, three classes.")
    other = {"decoder_in_channels": [16, 16, 12], "d_model": 12, "decoder_attention_heads": 3, "decoder_n_points": 2, "num_denoising": 0}
    yield case(
        "projected",
        "A decoder of another width; norms before, two layers over two maps, narrow pyramids, other functions.",
        (96, 64),
        **(other | {"decoder_in_channels": [16, 16, 16]}),
        normalize_before=True,
        encode_proj_layers=[1, 2],
        encoder_layers=2,
        hidden_expansion=0.5,
        depth_mult=0.34,
        activation_function="relu",
        encoder_activation_function="relu",
        decoder_activation_function="gelu",
    )
    yield case("one-layer", "One layer, whose first boxes are given too; samples of one place each.", decoder_layers=1, decoder_method="discrete", decoder_offset_scale=0.7, top_prob_values=2, lqe_layers=3)
    yield case("file", "The names of published checkpoints.", store=stores.whole, encoder_ffn_dim=8)
    made = config(num_labels=len(LABELS), num_queries=5)
    size = {"height": 64, "width": 96}
    yield from tasks(made, "d_fine", "DFine", 0.5, lambda **_: RTDetrImageProcessorPil(size=size))
