"""Decoders that read images by the queries of a Q-Former: BLIP-2, InstructBLIP, and videos: InstructBLIPVideo."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Inputs
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images
from weft_reference.vision_tasks import image_prompts as tasks

VISION: Changes = {
    "hidden_size": 16,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 12,
    "patch_size": 4,
}
QFORMER: Changes = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 24,
}


def pixels(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of the vision model's size, each of as many tokens as there are queries."""
    images, size = sum(counts), config.vision_config.image_size
    return Images(
        {"pixel_values": floats(f"pixels.{key}", (images, 3, size, size), -2.0, 2.0)}, [config.num_query_tokens] * images
    )


def instructed(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """The same, with an instruction for each that the Q-Former reads."""
    made = pixels(config, counts, key)
    lengths = tuple(7 - index % 3 for index in range(sum(counts)))
    text = text_batch(config.qformer_config.vocab_size, lengths, "right", key=f"instruction.{key}")
    own: Inputs = {f"qformer_{name}": np.asarray(text[name]) for name in ("input_ids", "attention_mask")}
    return Images(made.inputs | own, made.features)


def filmed(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Videos of three frames, each of as many tokens as there are queries, with an instruction for each video."""
    videos, size, frames = sum(counts), config.vision_config.image_size, 3
    made = instructed(config, counts, key)
    pixels = floats(f"pixels.{key}", (videos, frames, 3, size, size), -2.0, 2.0)
    return Images({**made.inputs, "pixel_values": pixels}, [frames * config.num_query_tokens] * videos)


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Another Q-Former."""
    heads = rng.choice((1, 2, 4))
    sizes: dict[str, Any] = {"num_attention_heads": heads, "hidden_size": heads * 8, "num_hidden_layers": rng.randint(1, 4)}
    own = QFORMER | sizes | {"cross_attention_frequency": rng.choice((1, 2, 3))}
    vision = {"image_size": rng.choice((8, 12)), "qkv_bias": rng.random() < 0.5}
    # Of another width, the reference would put the features of an image into the wrong places.
    text = {"word_embed_proj_dim": config.text_config.hidden_size} if config.text_config.model_type == "opt" else {}
    return {"qformer_config": own, "num_query_tokens": rng.randint(1, 5), "vision": vision, "text": text}


EACH: Changes = {"cross_attention_frequency": 1, "hidden_act": "relu", "layer_norm_eps": 1e-3}
NESTED = ("vision_outputs", "qformer_outputs", "language_model_outputs")
QUERIES = tuple(
    Family(
        model,
        prefix,
        text,
        VISION,
        {f"{kind}_token_index": IMAGE, "num_query_tokens": 3, "qformer_config": QFORMER},
        image,
        {
            "every-layer": (
                "Every layer of the Q-Former attends to images; the vision model has no biases of queries and keys.",
                {"qformer_config": QFORMER | EACH, "vision": {"qkv_bias": False}},
            )
        },
        vary=vary,
        heads=("ForConditionalGeneration",),
        without=NESTED,
        alone=False,
        tasks=asked,
    )
    for model, prefix, text, image, kind, asked in (
        ("blip-2", "Blip2", {"model_type": "opt", "ffn_dim": 20, "word_embed_proj_dim": 16}, pixels, "image", tasks.blip_2),
        ("instructblip", "InstructBlip", {"model_type": "llama"}, instructed, "image", tasks.instructblip),
        ("instructblipvideo", "InstructBlipVideo", {"model_type": "llama"}, filmed, "video", None),
    )
)
