"""Cohere Compass: the vision model of Qwen3-VL, and a Command R whose layers turn by their types."""

from __future__ import annotations

from random import Random

from transformers import PreTrainedConfig

from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, packed
from weft_reference.models.vision_language.packed import QWEN3_TOWER, ROPE, modalities

SLIDING: Changes = ROPE | {"rope_theta": 5e3}
TYPES: Changes = {
    "num_hidden_layers": 3,
    "sliding_window": 6,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {"sliding_attention": SLIDING, "full_attention": ROPE},
}


def tower(rng: Random, config: PreTrainedConfig) -> Changes:
    """Another tower, and layers of the text as they were."""
    heads = config.text_config.num_attention_heads
    return {
        "text": {
            "hidden_size": heads * 8,
            "head_dim": 8,
            "num_hidden_layers": 3,
            "layer_types": ["sliding_attention", "full_attention", rng.choice(("full_attention", "sliding_attention"))],
            "logit_scale": rng.choice((None, 0.5)),
        },
        "vision": {
            "num_heads": (towers := rng.choice((1, 2, 4))),
            "num_attention_heads": towers,
            "hidden_size": towers * rng.choice((8, 12)),
            "out_hidden_size": heads * 8,
            "depth": 3,
            "num_hidden_layers": 3,
        },
        "tie_word_embeddings": rng.random() < 0.5,
    }


NONE: Changes = {"sliding_attention": SLIDING, "full_attention": None}

COMPASS = (
    Family(
        "cohere_compass",
        "CohereCompass",
        {"head_dim": 8, "logit_scale": 0.25} | TYPES,
        QWEN3_TOWER,
        {"image_token_id": IMAGE},
        packed,
        {
            "no-rope": ("Layers of full attention do not turn.", {"text": {"rope_parameters": NONE}}),
            "no-scale": (
                "Logits as they are, of the table of embeddings.",
                {"text": {"logit_scale": None}, "tie_word_embeddings": True},
            ),
        },
        vary=tower,
        told=modalities,
        without=("image_hidden_states",),
    ),
)
