"""PP-DocLayoutV3: RT-DETR with masks and a reading order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.models.pp_ocr import STAGES, hgnet
from weft_reference.models.rt_detr import images

MODELS = ("pp_doclayout_v3",)


def config(**changes: Any) -> transformers.PreTrainedConfig:
    tiny = {
        "encoder_hidden_dim": 16,
        "encoder_in_channels": [10, 12, 16],
        "encoder_ffn_dim": 20,
        "encoder_attention_heads": 2,
        "d_model": 16,
        "num_queries": 6,
        "decoder_in_channels": [16, 16, 16],
        "decoder_ffn_dim": 24,
        "decoder_n_points": 2,
        "decoder_layers": 3,
        "decoder_attention_heads": 4,
        "num_labels": 3,
        "mask_feature_channels": [6, 8],
        "x4_feat_dim": 8,
        "num_prototypes": 5,
        "global_pointer_head_size": 7,
    }
    return transformers.PPDocLayoutV3Config(**({"backbone_config": hgnet(out_features=STAGES)} | tiny | changes))


def goldens() -> Iterator[Case]:
    def one(name: str, notes: str, size: tuple[int, int] = (64, 96), store: Store | None = None, **changes: Any) -> Case:
        return Case(f"pp_doclayout_v3/{name}", "PPDocLayoutV3ForObjectDetection", config(**changes), images(*size), notes, store)

    yield one("object-detection", "Two images, three classes; first boxes around masks.")
    other = {"hidden_expansion": 0.5, "encode_proj_layers": [1, 2], "encoder_layers": 2, "normalize_before": True, "activation_function": "relu"}
    yield one("boxes", "First boxes of positions; narrow pyramids, two layers over two maps.", (96, 64), mask_enhanced=False, **other)
    yield one("file", "The names of published checkpoints.", store=stores.whole)
