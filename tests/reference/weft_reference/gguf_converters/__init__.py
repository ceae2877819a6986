"""How llama.cpp's `convert_hf_to_gguf.py` converts each architecture: metadata by fields of the configuration, and what it does to tensors."""

from __future__ import annotations

from weft_reference.gguf_converters import decoders, encoders, mixtures, states
from weft_reference.gguf_converters.changes import Array, Change
from weft_reference.gguf_converters.converter import Converter
from weft_reference.gguf_converters.splits import Split

__all__ = ["CONVERTERS", "RENAMED", "SINGLE", "Array", "Change", "Converter", "Split"]

CONVERTERS = decoders.CONVERTERS | encoders.CONVERTERS | mixtures.CONVERTERS | states.CONVERTERS
# What converters call other than the checkpoint does, before they look names up.
RENAMED = {
    "e_score_correction_bias": "e_score_correction.bias",
    ".dt_bias": ".dt_proj.bias",
    "expert_bias": "expert_bias.bias",
}
# Kept in single precision, whatever the rest is.
SINGLE = ("ssm_conv1d", "ssm_a", "ssm_d", "ssm_norm", "shortconv.conv", "exp_probs_b")
