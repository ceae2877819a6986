"""Writes the checkpoints and inputs that `cargo xtask bench --speed` measures on.

    python tests/peers/checkpoints.py NAME --out DIR

Real shapes with random weights, float32 where the name does not say otherwise: `config.json`, `model.safetensors`, and
`inputs.safetensors` with an `in.<forward argument>` for each input; of what llama.cpp is measured with also `model.gguf`, the
same weights for it in float32, and `model-bf16.gguf` where they are stored in bfloat16. Widths, depths and vocabularies are those of the
published checkpoint that each function of `published/` names.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from safetensors.torch import load_file
from weft_reference.gguf_files import convert

from published import CHECKPOINTS
from published.made import Checkpoint

# What llama.cpp is measured with, and of weights in bfloat16 the types of its files.
GGUF = {
    "LlamaForCausalLM": ["F32", "BF16"],
    "MambaForCausalLM": ["F32", "BF16"],
    "Mamba2ForCausalLM": ["F32", "BF16"],
    "OlmoeForCausalLM": ["BF16"],
}


def write_gguf(config: Any, folder: Path, path: Path, kind: str) -> None:
    """The folder's weights as one file, with a vocabulary of made-up pieces: nothing is spelt."""
    count = config.vocab_size
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *(f"t{index}" for index in range(3, count))],
        "tokenizer.ggml.scores": [0.0] * count,
        "tokenizer.ggml.token_type": [2, 3, 3] + [1] * (count - 3),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    convert(config, load_file(folder / "model.safetensors"), path, lambda _name, _shape: kind, metadata)


def drawn(made: Checkpoint) -> Any:
    """The model with random weights."""
    if isinstance(made.config, Mapping):
        import diffusers

        return getattr(diffusers, made.model_class)(**made.config).to(made.dtype)
    model = getattr(transformers, made.model_class)._from_config(made.config, dtype=made.dtype)
    if any(isinstance(module, torch.nn.BatchNorm2d) for module in model.modules()):
        # As they are drawn, statistics of batch norms being those of nothing seen, values would fall below all normal numbers.
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(module.weight)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=list(CHECKPOINTS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    made = CHECKPOINTS[options.name]()
    model = drawn(made).eval()
    options.out.mkdir(parents=True, exist_ok=True)
    # One file: candle is given it by name.
    model.save_pretrained(options.out, max_shard_size="20GB")
    if made.model_class in GGUF and made.gguf:
        del model
        kinds = ["F32"] if made.dtype == torch.float32 else GGUF[made.model_class]
        for kind in kinds:
            name = {"F32": "model.gguf", "BF16": "model-bf16.gguf"}[kind]
            write_gguf(made.config, options.out, options.out / name, kind)
    tensors = {f"in.{name}": np.ascontiguousarray(value) for name, value in made.inputs.items()}
    save_file(tensors, options.out / "inputs.safetensors")


if __name__ == "__main__":
    main()
