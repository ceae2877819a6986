"""Detectors and segmenters that a text leads, drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random

import transformers

from weft_reference.cases import Case
from weft_reference.drawn.common import store
from weft_reference.drawn.detectors import images
from weft_reference.inputs import floats, integers
from weft_reference.models import grounding_dino, mask2former, oneformer


def grounding(prefix: str, rng: Random, path: str) -> Case:
    first = rng.randint(2, 4)
    stages = [f"stage{stage}" for stage in range(first, 5)]
    if rng.random() < 0.7:
        backbone = mask2former.swin(out_features=stages, window_size=rng.randint(2, 5))
    else:
        backbone = mask2former.resnet(out_features=stages)
    made = {
        "num_queries": rng.randint(2, 5),
        "d_model": 32 * rng.randint(1, 2),
        "encoder_layers": rng.randint(1, 3),
        "encoder_ffn_dim": 8 * rng.randint(1, 4),
        "encoder_attention_heads": rng.choice((2, 4)),
        "decoder_layers": rng.randint(2, 4),
        "decoder_ffn_dim": rng.randint(8, 40),
        "decoder_attention_heads": rng.choice((1, 2, 4)),
        "encoder_n_points": rng.randint(1, 5),
        "decoder_n_points": rng.randint(1, 5),
        "num_feature_levels": rng.randint(5 - first, 4),
        "position_embedding_type": rng.choice(("sine", "learned")),
        "positional_embedding_temperature": rng.choice((20, 1000)),
        "activation_function": rng.choice(("relu", "gelu", "silu")),
        "decoder_bbox_embed_share": rng.random() < 0.5,
        "max_text_len": 20,
    }
    pixels = images(rng, path, least=96, masked=rng.random() < 0.5)
    rows = [tuple(rng.randint(0, 3) for _ in range(rng.randint(1, 3))) for _ in range(len(pixels["pixel_values"]))]
    config = grounding_dino.config(prefix, backbone, {"max_position_embeddings": 24}, **made)
    inputs = pixels | grounding_dino.texts(*rows)
    return Case(path, f"{prefix}ForObjectDetection", config, inputs, "Drawn at random.", store(rng), **grounding_dino.OTHER)


def tasks(rng: Random, path: str) -> Case:
    backbone = mask2former.swin(window_size=rng.randint(2, 5)) if rng.random() < 0.6 else mask2former.resnet()
    widths = {"mask_dim": 32, "num_attention_heads": rng.choice((1, 2, 4)), "use_task_norm": rng.random() < 0.7, "pre_norm": rng.random() < 0.3}
    counts = {"encoder_layers": rng.randint(1, 3), "decoder_layers": rng.randint(2, 6), "query_dec_layers": rng.randint(1, 3)}
    sizes = {"num_queries": rng.randint(2, 8), "num_labels": rng.randint(1, 5), "task_seq_len": rng.randint(4, 12)}
    config = oneformer.config(backbone, **widths, **counts, **sizes)
    batch, edges = rng.randint(1, 3), (rng.randint(64, 100), rng.randint(64, 100))
    inputs = {"pixel_values": floats(f"{path}.pixels", (batch, 3, *edges), -2.0, 2.0)}
    inputs["task_inputs"] = integers(f"{path}.task", (batch, config.task_seq_len), 0, 20)
    return Case(path, "OneFormerForUniversalSegmentation", config, inputs, "Drawn at random.", store(rng), without=oneformer.OTHER)


DRAWN = {
    "grounding-dino": partial(grounding, "GroundingDino"),
    "mm-grounding-dino": partial(grounding, "MMGroundingDino"),
    "oneformer": tasks,
}
