"""Decoders that read images, one entry a model."""

from __future__ import annotations

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Inputs
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.canvas import CANVAS
from weft_reference.models.vision_language.compass import COMPASS
from weft_reference.models.vision_language.delta import DELTAS
from weft_reference.models.vision_language.ernie import ERNIE
from weft_reference.models.vision_language.family import SIGLIP, Changes, Family, listed, patches, square
from weft_reference.models.vision_language.fastvit import FASTVIT
from weft_reference.models.vision_language.granite_docling import DOCLING
from weft_reference.models.vision_language.hunyuan import HUNYUAN
from weft_reference.models.vision_language.kimi import KIMI
from weft_reference.models.vision_language.local_views import LOCAL_VIEWS
from weft_reference.models.vision_language.merged import MERGED
from weft_reference.models.vision_language.molmo import MOLMO
from weft_reference.models.vision_language.muse import MUSE
from weft_reference.models.vision_language.native import NATIVE
from weft_reference.models.vision_language.nested import NESTED
from weft_reference.models.vision_language.packed import PACKED
from weft_reference.models.vision_language.paddleocr import PADDLEOCR_VL
from weft_reference.models.vision_language.perception import PERCEPTION
from weft_reference.models.vision_language.queries import QUERIES
from weft_reference.models.vision_language.radio import RADIO
from weft_reference.models.vision_language.towers import TOWERS
from weft_reference.models.vision_language.windows import WINDOWED
from weft_reference.vision_tasks import vision_language as tasks

WINDOWS: Changes = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
SQUARES: Changes = {"downsample_factor": 2}
SQUARE: Changes = {"image_size": [16, 16], "patch_size": [4, 4]}


def squares(config: PreTrainedConfig) -> int:
    return patches(config) // config.downsample_factor**2


def prefix(inputs: Inputs) -> Inputs:
    """All but the last two tokens of each text are its prefix."""
    types = np.zeros_like(inputs["input_ids"])
    for row, seen in enumerate(inputs["attention_mask"]):
        types[row, np.flatnonzero(seen)[-2:]] = 1
    return {"token_type_ids": types}


GOT_OCR2: Changes = {
    "hidden_size": 12,
    "output_channels": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "image_size": 20,
    "patch_size": 4,
    "window_size": 3,
    "global_attn_indexes": [1],
    "mlp_dim": 18,
}


def halved_twice(config: PreTrainedConfig) -> int:
    """Patches after two convolutions of stride 2."""
    side = config.vision_config.image_size // config.vision_config.patch_size
    return ((side + 3) // 4) ** 2


def surrounded(inputs: Inputs) -> Inputs:
    """Ids of which the first that are no padding stand around images."""
    ids = np.array(inputs["input_ids"])
    for row, line in enumerate(ids):
        tokens = np.flatnonzero((line != 0) & (line != IMAGE))
        ids[row, tokens[:2]] = (70, 73)
    return {"input_ids": ids}


"""The side of Janus that writes images, which is not read."""
JANUS_WRITER: Changes = {
    "embed_dim": 4,
    "num_embeddings": 8,
    "latent_channels": 32,
    "base_channels": 32,
    "channel_multiplier": [1],
    "num_res_blocks": 1,
    "projection_dim": 8,
    "image_token_embed_dim": 8,
}

TILED = (
    Family(
        "aya_vision",
        "AyaVision",
        {"model_type": "cohere2"} | WINDOWS,
        SIGLIP,
        SQUARES | {"image_token_index": IMAGE, "alignment_intermediate_size": 22},
        square(squares),
        {
            "every-patch": ("Every patch is a token.", {"downsample_factor": 1}),
            "own-width": (
                "The projector is as wide as the text, its norm has another epsilon.",
                {"alignment_intermediate_size": 16, "adapter_layer_norm_eps": 1e-2},
            ),
            "earlier-layer": ("What goes into the last layer.", {"vision_feature_layer": -2}),
            "untied": (
                "Scores of tokens have a table of their own.",
                {"tie_word_embeddings": False, "text": {"tie_word_embeddings": False}},
            ),
        },
        tasks.aya_vision,
        lambda rng, _: {"alignment_intermediate_size": 2 * rng.randint(3, 20), "downsample_factor": rng.choice((1, 2, 4))},
    ),
    Family(
        "cohere2_vision",
        "Cohere2Vision",
        {"model_type": "cohere2"} | WINDOWS,
        SIGLIP,
        SQUARES | {"image_token_id": IMAGE, "alignment_intermediate_size": 22},
        square(squares),
        {
            "every-patch": ("Every patch is a token.", {"downsample_factor": 1}),
            "unused-head": ("The vision model has a head that is not used.", {"vision": {"vision_use_head": True}}),
        },
        tasks.cohere2_vision,
        lambda rng, _: {"alignment_intermediate_size": 2 * rng.randint(3, 20), "downsample_factor": rng.choice((1, 2, 4))},
    ),
    Family(
        "paligemma",
        "PaliGemma",
        {"model_type": "gemma", "head_dim": 6, "num_key_value_heads": 1},
        SIGLIP,
        {"image_token_index": IMAGE, "projection_dim": 16},
        square(patches),
        {
            "gemma2": (
                "PaliGemma 2: windows, soft-capped attention and logits.",
                {
                    "text": {
                        "model_type": "gemma2",
                        "sliding_window": 6,
                        "query_pre_attn_scalar": 9,
                        "attn_logit_softcapping": 2.0,
                        "final_logit_softcapping": 3.0,
                        "use_bidirectional_attention": None,
                    }
                },
            ),
        },
        tasks.paligemma,
        lambda rng, config: {
            "projection_dim": config.text_config.hidden_size,
            "text": rng.choice(
                ({}, {"model_type": "gemma2", "sliding_window": rng.randint(3, 9), "query_pre_attn_scalar": 12})
            ),
        },
        given=prefix,
    ),
    Family(
        "idefics3",
        "Idefics3",
        {"model_type": "llama"},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")},
        {"image_token_id": IMAGE, "scale_factor": 2},
        listed,
        {
            "larger-squares": ("Every image is one token.", {"scale_factor": 4}),
            "tied": ("Scores of tokens share the table of embeddings.", {"tie_word_embeddings": True, "text": {"tie_word_embeddings": True}}),
        },
        tasks.idefics3,
        lambda rng, _: {"scale_factor": rng.choice((1, 2, 4))},
    ),
    Family(
        "smolvlm",
        "SmolVLM",
        {"model_type": "llama"},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")},
        {"image_token_id": IMAGE, "scale_factor": 2},
        listed,
        {"larger-squares": ("Every image is one token.", {"scale_factor": 4})},
        tasks.smolvlm,
        lambda rng, _: {"scale_factor": rng.choice((1, 2, 4))},
        without=("image_hidden_states",),
    ),
    Family(
        "deepseek_vl",
        "DeepseekVL",
        {"model_type": "llama"},
        SIGLIP,
        {"image_token_id": IMAGE},
        square(patches),
        {
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
            "unused-head": ("The vision model has a head that is not used.", {"vision": {"vision_use_head": True}}),
        },
        tasks=tasks.deepseek_vl,
    ),
    Family(
        "janus",
        "Janus",
        {"model_type": "llama"},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head", "intermediate_size")}
        | {"mlp_ratio": 1.5, "projection_dim": 16},
        {"image_token_id": IMAGE, "vq_config": JANUS_WRITER},
        square(patches),
        {
            "deeper": (
                "A projector of three layers; no biases of queries, keys and values.",
                {"vision": {"depth": 3, "attention_bias": False, "hidden_act": "relu"}},
            ),
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
        },
        vary=lambda rng, config: {
            "vision": {
                "projection_dim": config.text_config.hidden_size,
                "mlp_ratio": rng.choice((1.0, 1.5, 2.0)),
                "depth": rng.randint(1, 3),
            }
        },
        tasks=tasks.janus,
    ),
    Family(
        "ovis2",
        "Ovis2",
        {"model_type": "qwen2"},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")}
        | {"vocab_size": 14, "hidden_stride": 2, "num_visual_indicator_tokens": 5},
        {"image_token_id": IMAGE, "visual_indicator_token_ids": [70, 71, 72, 73, 74], "hidden_size": 16, "vocab_size": 99},
        square(lambda config: patches(config) // config.vision_config.hidden_stride**2),
        {
            "every-patch": (
                "Every patch is a token; biases everywhere.",
                {"vision": {"hidden_stride": 1, "qkv_bias": True, "mlp_bias": True, "hidden_act": "gelu"}},
            ),
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False}),
        },
        vary=lambda rng, config: {
            "vision": {"hidden_stride": rng.choice((1, 2, 4)), "vocab_size": rng.randint(7, 30)},
            "hidden_size": config.text_config.hidden_size,
            "vocab_size": config.text_config.vocab_size,
        },
        given=surrounded,
        tasks=tasks.ovis2,
    ),
    Family(
        "qianfan_ocr",
        "QianfanOCR",
        {"model_type": "qwen3", "head_dim": 6},
        {name: value for name, value in SIGLIP.items() if name not in ("model_type", "vision_use_head")} | SQUARE,
        {"image_token_id": IMAGE, "image_seq_length": 4},
        square(lambda _: 4),
        {
            "every-patch": (
                "Every patch is a token; no biases of queries, keys and values.",
                {"downsample_ratio": 1.0, "vision": {"image_size": [8, 8], "attention_bias": False}},
            ),
            "earlier-layer": ("What goes into the last layer.", {"vision_feature_layer": -2}),
        },
        tasks=tasks.qianfan_ocr,
    ),
    Family(
        "got_ocr2",
        "GotOcr2",
        {"model_type": "qwen2"},
        GOT_OCR2,
        {"image_token_index": IMAGE},
        square(halved_twice),
        {
            "no-positions": (
                "No positions at all, no biases of queries, keys and values; windows of another size.",
                {"vision": {"use_abs_pos": False, "use_rel_pos": False, "qkv_bias": False, "window_size": 2}},
            ),
            "whole": ("All patches attend to each other.", {"vision": {"window_size": 0, "hidden_act": "relu"}}),
            "untied": ("Scores of tokens have a table of their own.", {"tie_word_embeddings": False, "text": {"tie_word_embeddings": False}}),
        },
        tasks.got_ocr2,
        lambda rng, config: {
            "vision": {
                "output_channels": rng.choice((4, 10)),
                "mlp_dim": rng.randint(5, 30),
                "image_size": rng.choice((16, 24)),
                "window_size": rng.choice((0, 2, 3, 5)),
                "global_attn_indexes": rng.choice(([], [0], [1])),
            }
        },
    ),
)

FAMILIES = (
    *(TILED + PACKED + NATIVE + MERGED + DELTAS + COMPASS + NESTED + CANVAS + DOCLING),
    *(ERNIE + FASTVIT + HUNYUAN + KIMI + LOCAL_VIEWS + MOLMO + MUSE + PADDLEOCR_VL + PERCEPTION + QUERIES + RADIO + TOWERS + WINDOWED),
)
