"""PerceptionLM: tiles of images through timm's Perception Encoder, before Llama."""

from __future__ import annotations

from random import Random
from typing import Any

from transformers import PreTrainedConfig

from weft_reference import timm_networks
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images

LARGE, GIGANTIC = "vit_pe_core_large_patch14_336", "vit_pe_core_gigantic_patch14_448"


def network(architecture: str = LARGE, **changes: Any) -> Changes:
    arguments = {
        "embed_dim": 16,
        "depth": 2,
        "num_heads": 2,
        "patch_size": 4,
        "img_size": [16, 16],
        "ref_feat_shape": [6, 6],
        "init_values": 0.1,
        "mlp_ratio": 1.5,
        "global_pool": "",
        "use_post_transformer_norm": False,
    }
    made = {name: value for name, value in (arguments | changes).items() if value is not None}
    return {"model_type": "timm_wrapper", "architecture": architecture, "model_args": made}


def tiles(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Three tiles of each image."""
    timm_networks.load()
    arguments, images, of_each = config.vision_config.model_args, sum(counts), 3
    edge, side = arguments["img_size"][0], arguments["img_size"][0] // arguments["patch_size"]
    pixels = floats(f"pixels.{key}", (images, of_each, 3, edge, edge), -2.0, 2.0)
    features = of_each * (side // config.projector_pooling_ratio) ** 2
    return Images({"pixel_values": pixels}, [features] * images)


def vary(rng: Random, _: PreTrainedConfig) -> Changes:
    large, heads = rng.random() < 0.5, rng.choice((1, 2, 4))
    changes = {
        "embed_dim": heads * rng.choice((4, 8)),
        "num_heads": heads,
        "depth": rng.randint(1, 3),
        "ref_feat_shape": [rng.randint(2, 9)] * 2,
        "init_values": rng.choice((0.1, None)),
        "mlp_ratio": rng.choice((1.5, 2.0)),
    }
    vision = network(LARGE if large else GIGANTIC, **changes)
    return {"vision": vision, "vision_use_cls_token": large, "projector_pooling_ratio": rng.choice((1, 2, 3))}


PERCEPTION = (
    Family(
        "perception_lm",
        "PerceptionLM",
        {"model_type": "llama"},
        network(),
        {"image_token_id": IMAGE, "projector_pooling_ratio": 2, "video_token_id": 71},
        tiles,
        {
            "every-patch": ("Every patch is a token.", {"projector_pooling_ratio": 1}),
            "overlapping": ("Windows of patches that are averaged overlap.", {"projector_pooling_ratio": 3, "vision": network(img_size=[28, 28])}),
            "gigantic": (
                "The vision model has no class token, counts places from 0 and scales nothing.",
                {"vision": network(GIGANTIC, init_values=None), "vision_use_cls_token": False},
            ),
            "tied": (
                "Scores of tokens share the table of embeddings.",
                {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}},
            ),
        },
        vary=vary,
        without=("image_hidden_states",),
    ),
)
