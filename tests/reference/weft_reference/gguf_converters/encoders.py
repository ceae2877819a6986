"""Encoders."""

from __future__ import annotations

from weft_reference.gguf_converters.converter import HEAD, LLAMA, MLP, NORM, SIZES, Converter

CONVERTERS = {
    "bert": Converter(
        "bert",
        SIZES | MLP | NORM,
        rope=False,
        fixed={"attention.causal": False},
        prefix="bert.",
        dropped=("pooler.dense",),
    ),
    "nomic_bert": Converter("nomic-bert", SIZES | MLP | NORM, fixed={"attention.causal": False}, prefix="nomic_bert."),
    "eurobert": Converter("eurobert", LLAMA | HEAD, fixed={"attention.causal": False}),
}
