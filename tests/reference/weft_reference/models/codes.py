"""CSM and Kyutai's speech to text: codes of speech, one for each codebook, to codes or texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import text_batch

MODELS = ("csm", "kyutai_speech_to_text")
SMALL: dict[str, Any] = {
    "num_codebooks": 3,
    "vocab_size": 20,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 30,
}
CODEC: dict[str, Any] = {
    "hidden_size": 8,
    "num_filters": 2,
    "num_residual_layers": 1,
    "upsampling_ratios": [2, 2],
    "codebook_size": 8,
    "codebook_dim": 4,
    "vector_quantization_hidden_dimension": 4,
    "num_quantizers": 2,
    "num_semantic_quantizers": 1,
    "num_hidden_layers": 1,
    "intermediate_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "upsample_groups": 8,
}


def codes(key: str, channels: int, below: int, padding: str) -> Inputs:
    made = [text_batch(below, (7, 5), padding, key=f"{key}.{channel}") for channel in range(channels)]
    return {
        "input_ids": np.stack([text["input_ids"] for text in made], axis=2),
        "attention_mask": made[0]["attention_mask"],
    }


def csm(name: str, notes: str, padding: str = "right", tied: bool = True, **changes: Any) -> Case:
    made = SMALL | {"text_vocab_size": 30, "intermediate_size": 20, "audio_token_id": 5, "pad_token_id": 0} | changes
    depth = {name: made[name] for name in ("num_codebooks", "vocab_size")}
    depth |= {
        "backbone_hidden_size": made["hidden_size"],
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
    }
    depth |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.CsmConfig(
        depth_decoder_config=depth, codec_config={"model_type": "mimi", **CODEC}, tie_codebooks_embeddings=tied, **made
    )
    given = codes(name, made["num_codebooks"], made["vocab_size"], padding)
    return Case(f"csm/{name}", "CsmForConditionalGeneration", config, given, notes)


def kyutai(name: str, notes: str, padding: str = "right", **changes: Any) -> Case:
    made = SMALL | {"codebook_vocab_size": 9, "ffn_dim": 24, "audio_pad_token_id": 20 + 27, "pad_token_id": 3} | changes
    made["audio_pad_token_id"] = made["vocab_size"] + made["num_codebooks"] * made["codebook_vocab_size"]
    config = transformers.KyutaiSpeechToTextConfig(codec_config={"model_type": "mimi", **CODEC}, **made)
    given = dict(codes(name, made["num_codebooks"] + 1, made["codebook_vocab_size"], padding))
    given["input_ids"] = given["input_ids"].copy()
    given["input_ids"][0, :2, 1:] = made["audio_pad_token_id"]
    return Case(f"kyutai_speech_to_text/{name}", "KyutaiSpeechToTextForConditionalGeneration", config, given, notes)


def goldens() -> Iterator[Case]:
    yield csm("codes", "Codes of two lengths.")
    biased = {"attention_bias": True, "mlp_bias": True, "head_dim": 6, "hidden_act": "gelu"}
    yield csm("untied", "Embeddings of its own, biases, wider heads; padding on the left.", "left", False, **biased)
    yield kyutai("codes", "Codes of two lengths, and none at the first positions.")
    other = {"head_dim": 6, "hidden_act": "gelu", "sliding_window": 3, "num_key_value_heads": 4}
    yield kyutai("wide", "Wider heads, a window shorter than the text; padding on the left.", "left", **other)


def random_case(made: Any, rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    changes = {
        "num_codebooks": rng.randint(2, 5),
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([count for count in (1, 2, 4) if heads % count == 0]),
        "hidden_size": 8 * heads,
        "num_hidden_layers": rng.randint(1, 3),
    }
    return replace(
        made("random", "Drawn at random.", rng.choice(("right", "left")), **changes), path=path, store=stores.whole
    )


DRAWN = {
    "csm": lambda rng, path: random_case(csm, rng, path),
    "kyutai_speech_to_text": lambda rng, path: random_case(kyutai, rng, path),
}
