"""Detection transformers drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random

import numpy as np
import transformers

from weft_reference.cases import Case, Inputs
from weft_reference.drawn.common import Changes, store
from weft_reference.inputs import floats

HEADS = ("Model", "ForObjectDetection")


def images(rng: Random, path: str, multiple: int = 1, least: int = 40, masked: bool = True) -> Inputs:
    height, width = (multiple * rng.randint(-(-least // multiple), 160 // multiple) for _ in range(2))
    batch = rng.randint(1, 3)
    values = floats(f"{path}.{rng.random()}", (batch, 3, height, width), -2.0, 2.0)
    if not masked:
        return {"pixel_values": values}
    mask = np.ones((batch, height, width), np.int64)
    for image in mask:
        image[rng.randint(height // 2, height) :] = 0
        image[:, rng.randint(width // 2, width) :] = 0
    return {"pixel_values": values * mask[:, None].astype(np.float32), "pixel_mask": mask}


def layout(rng: Random) -> Changes:
    widths = [4 * rng.randint(1, 5) for _ in range(4)]
    return {
        "embedding_size": widths[0],
        "hidden_sizes": widths,
        "depths": [rng.randint(1, 2) for _ in range(4)],
        "layer_type": rng.choice(("basic", "bottleneck")),
        "hidden_act": rng.choice(("relu", "gelu")),
    }


def transformer(rng: Random, multiple: int = 4) -> Changes:
    """Widths that heads and embeddings divide."""
    heads = rng.choice((1, 2, 4))
    return {
        "num_queries": rng.randint(2, 9),
        "d_model": multiple * heads * rng.randint(1, 3),
        "encoder_layers": rng.randint(1, 3),
        "encoder_ffn_dim": rng.randint(8, 40),
        "encoder_attention_heads": heads,
        "decoder_layers": rng.randint(2, 4),
        "decoder_ffn_dim": rng.randint(8, 40),
        "decoder_attention_heads": heads,
        "num_labels": rng.randint(1, 6),
    }


def conditional(rng: Random, path: str) -> Case:
    backbone = transformers.ResNetConfig(**layout(rng), out_features=["stage4"])
    made = transformer(rng) | {
        "auxiliary_loss": rng.random() < 0.5,
        "position_embedding_type": rng.choice(("sine", "learned")),
        "activation_function": rng.choice(("relu", "gelu", "silu")),
    }
    config = transformers.ConditionalDetrConfig(backbone_config=backbone, **made)
    inputs = images(rng, path, masked=rng.random() < 0.5)
    return Case(path, "ConditionalDetrForObjectDetection", config, inputs, "Drawn at random.", store(rng))


def dab(rng: Random, path: str) -> Case:
    backbone = transformers.ResNetConfig(**layout(rng), out_features=["stage4"])
    made = transformer(rng)
    made["hidden_size"] = made.pop("d_model")
    made |= {
        "activation_function": rng.choice(("prelu", "relu")),
        "num_patterns": rng.choice((0, 0, 3)),
        "keep_query_pos": rng.random() < 0.5,
        "normalize_before": rng.random() < 0.5,
        "temperature_height": rng.choice((20, 100)),
        "sine_position_embedding_scale": rng.choice((None, 3.0)),
    }
    config = transformers.DabDetrConfig(backbone_config=backbone, **made)
    inputs = images(rng, path, masked=rng.random() < 0.5)
    return Case(path, f"DabDetr{rng.choice(HEADS)}", config, inputs, "Drawn at random.", store(rng))


def deformable(rng: Random, path: str) -> Case:
    first = rng.randint(2, 4)
    backbone = transformers.ResNetConfig(**layout(rng), out_indices=list(range(first, 5)))
    levels = rng.randint(max(2, 5 - first), 5)
    two_stage = rng.random() < 0.5
    made = transformer(rng, 32) | {
        "num_feature_levels": levels,
        "encoder_n_points": rng.randint(1, 5),
        "decoder_n_points": rng.randint(1, 5),
        "with_box_refine": two_stage or rng.random() < 0.5,
        "two_stage": two_stage,
        "two_stage_num_proposals": rng.randint(2, 9),
        "position_embedding_type": rng.choice(("sine", "learned")),
        "activation_function": rng.choice(("relu", "gelu", "silu")),
    }
    config = transformers.DeformableDetrConfig(backbone_config=backbone, **made)
    # The coarsest map must have more than one place, of which the reference makes no norm.
    inputs = images(rng, path, least=130, masked=rng.random() < 0.5)
    without = ("enc_outputs_coord_logits",)
    return Case(path, "DeformableDetrForObjectDetection", config, inputs, "Drawn at random.", store(rng), without=without)


def rt_detr(prefix: str, rng: Random, path: str) -> Case:
    backbone = transformers.RTDetrResNetConfig(**layout(rng), out_indices=[2, 3, 4])
    heads, width = rng.choice((1, 2)), 8 * rng.randint(1, 3)
    made = transformer(rng) | {
        "encoder_hidden_dim": width,
        "encoder_in_channels": backbone.hidden_sizes[1:],
        "encoder_attention_heads": heads,
        "encode_proj_layers": rng.choice(([2], [0, 2], [1])),
        "decoder_in_channels": [width] * 3,
        "decoder_n_points": rng.randint(1, 5),
        "normalize_before": rng.random() < 0.5,
        "hidden_expansion": rng.choice((0.5, 1.0, 1.5)),
        "positional_encoding_temperature": rng.choice((100, 10000)),
        "num_denoising": rng.choice((0, 5)),
        "activation_function": rng.choice(("relu", "silu")),
        "encoder_activation_function": rng.choice(("relu", "gelu")),
    }
    if prefix == "RTDetrV2":
        made |= {"decoder_method": rng.choice(("default", "discrete")), "decoder_offset_scale": rng.choice((0.5, 0.8))}
    config = getattr(transformers, f"{prefix}Config")(backbone_config=backbone, **made)
    inputs = images(rng, path, 32, masked=False)
    return Case(path, prefix + rng.choice(HEADS), config, inputs, "Drawn at random.", store(rng))


def lw_detr(rng: Random, path: str) -> Case:
    side, patch, layers, heads = rng.randint(1, 3), rng.choice((4, 8)), rng.randint(1, 4), rng.choice((1, 2, 3))
    vit = transformers.LwDetrViTConfig(
        hidden_size=heads * 4 * rng.randint(1, 3),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        mlp_ratio=rng.randint(1, 4),
        hidden_act=rng.choice(("gelu", "relu")),
        patch_size=patch,
        image_size=side**3,
        pretrain_image_size=patch * rng.randint(2, 6),
        num_windows=side * side,
        qkv_bias=rng.random() < 0.5,
        window_block_indices=[index for index in range(layers) if rng.random() < 0.6],
        out_indices=sorted(rng.sample(range(layers + 1), rng.randint(1, layers))),
    )
    decoder_heads = rng.choice((1, 2, 4))
    made = {
        "projector_scale_factors": [rng.choice((0.5, 1.0, 2.0)) for _ in range(rng.randint(1, 3))],
        "d_model": 8 * decoder_heads,
        "num_queries": rng.randint(1, 4),
        "group_detr": rng.randint(1, 3),
        "decoder_layers": rng.randint(1, 3),
        "decoder_ffn_dim": rng.randint(4, 24),
        "decoder_n_points": rng.randint(1, 4),
        "decoder_self_attention_heads": decoder_heads,
        "decoder_cross_attention_heads": rng.choice((1, 2, 8)),
        "decoder_activation_function": rng.choice(("relu", "gelu", "silu")),
        "activation_function": rng.choice(("relu", "gelu", "silu")),
        "c2f_num_blocks": rng.randint(0, 3),
        "attention_bias": rng.random() < 0.7,
        "num_labels": rng.randint(2, 5),
    }
    inputs = images(rng, path, 2 * side * patch, least=64, masked=rng.random() < 0.5)
    return Case(path, f"LwDetr{rng.choice(HEADS)}", transformers.LwDetrConfig(backbone_config=vit, **made), inputs, "Drawn at random.", store(rng))


def rf_detr(rng: Random, path: str) -> Case:
    count, patch, layers, heads = rng.randint(1, 3), rng.choice((4, 8)), rng.randint(1, 4), rng.choice((1, 2, 3))
    dinov2 = transformers.RfDetrDinov2Config(
        hidden_size=heads * 4 * rng.randint(1, 3),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        mlp_ratio=rng.randint(1, 4),
        hidden_act=rng.choice(("gelu", "relu")),
        patch_size=patch,
        image_size=patch * rng.randint(2, 12),
        num_windows=count,
        qkv_bias=rng.random() < 0.5,
        use_swiglu_ffn=rng.random() < 0.3,
        apply_layernorm=rng.random() < 0.7,
        out_indices=sorted(rng.sample(range(layers + 1), rng.randint(1, layers))),
    )
    decoder_heads = rng.choice((1, 2, 4))
    made = {
        "d_model": 8 * decoder_heads,
        "num_queries": rng.randint(1, 4),
        "group_detr": rng.randint(1, 3),
        "decoder_layers": rng.randint(1, 3),
        "decoder_ffn_dim": rng.randint(4, 24),
        "decoder_n_points": rng.randint(1, 4),
        "decoder_self_attention_heads": decoder_heads,
        "decoder_cross_attention_heads": rng.choice((1, 2, 8)),
        "decoder_activation_function": rng.choice(("relu", "gelu", "silu")),
        "activation_function": rng.choice(("relu", "gelu", "silu")),
        "c2f_num_blocks": rng.randint(0, 3),
        "attention_bias": rng.random() < 0.7,
        "mask_downsample_ratio": rng.randint(1, 5),
        "intermediate_size": rng.randint(4, 24),
        "num_labels": rng.randint(2, 5),
    }
    head = rng.choice((*HEADS, "ForInstanceSegmentation"))
    inputs = images(rng, path, count * patch, least=64, masked=rng.random() < 0.5)
    return Case(path, f"RfDetr{head}", transformers.RfDetrConfig(backbone_config=dinov2, **made), inputs, "Drawn at random.", store(rng))


DRAWN = {
    "conditional_detr": conditional,
    "dab-detr": dab,
    "deformable_detr": deformable,
    "lw_detr": lw_detr,
    "rf_detr": rf_detr,
    "rt_detr": partial(rt_detr, "RTDetr"),
    "rt_detr_v2": partial(rt_detr, "RTDetrV2"),
}
