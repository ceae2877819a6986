"""How llama.cpp's `convert_hf_to_gguf.py` converts each architecture: metadata by fields of the configuration, and what it does to tensors."""

from __future__ import annotations

from typing import Any

from weft_reference.gguf_converters import (
    decoders,
    encoder_decoders,
    encoders,
    hybrids,
    latent,
    mixtures,
    sliding,
    stacks,
    states,
)
from weft_reference.gguf_converters.changes import Array, Change
from weft_reference.gguf_converters.converter import Converter
from weft_reference.gguf_converters.splits import Split

__all__ = ["CONVERTERS", "RENAMED", "SINGLE", "Array", "Change", "Converter", "Split", "converter_of"]

CONVERTERS = (
    decoders.CONVERTERS
    | encoders.CONVERTERS
    | encoder_decoders.CONVERTERS
    | mixtures.CONVERTERS
    | states.CONVERTERS
    | hybrids.CONVERTERS
    | latent.CONVERTERS
    | sliding.CONVERTERS
    | stacks.CONVERTERS
)


def converter_of(config: Any) -> Converter:
    """That of a configuration: T5's encoder alone, EmbeddingGemma and Nemotron-H with experts are architectures of their own."""
    own = {"T5EncoderModel": "t5encoder", "Gemma3TextModel": "gemma_embedding"}
    if config.architectures and config.architectures[0] in own:
        return CONVERTERS[own[config.architectures[0]]]
    sparse = config.model_type == "nemotron_h" and "moe" in config.layers_block_type
    return CONVERTERS["nemotron_h_moe" if sparse else config.model_type]


# What converters call other than the checkpoint does, before they look names up.
RENAMED = {
    "e_score_correction_bias": "e_score_correction.bias",
    ".dt_bias": ".dt_proj.bias",
    "expert_bias": "expert_bias.bias",
}
# Kept in single precision, whatever the rest is.
SINGLE = ("ssm_conv1d", "ssm_a", "ssm_d", "ssm_norm", "shortconv.conv", "exp_probs_b")
