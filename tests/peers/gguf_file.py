"""A Llama as one GGUF file, as llama.cpp reads it (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
import transformers

ALIGNMENT = 32
UINT32, INT32, FLOAT32, STRING, ARRAY = 4, 5, 6, 8, 9
# Kinds of tokens.
NORMAL, UNKNOWN, CONTROL = 1, 2, 3

# Element types, and their numbers.
KINDS = {torch.float32: 0, torch.bfloat16: 30}

LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind: int, content: Any) -> bytes:
    if kind == STRING:
        return string(content)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f"}[kind], content)


def entry(key: str, kind: int, content: Any) -> bytes:
    return string(key) + struct.pack("<I", kind) + value(kind, content)


def array(key: str, kind: int, contents: list[Any]) -> bytes:
    head = string(key) + struct.pack("<IIQ", ARRAY, kind, len(contents))
    return head + b"".join(value(kind, content) for content in contents)


def metadata(config: transformers.LlamaConfig) -> list[bytes]:
    """Sizes, and a vocabulary of made-up pieces: nothing is spelt."""
    numbers = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "rope.dimension_count": config.hidden_size // config.num_attention_heads,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "vocab_size": config.vocab_size,
    }
    count = config.vocab_size
    return [
        entry("general.architecture", STRING, "llama"),
        entry("general.alignment", UINT32, ALIGNMENT),
        *(entry(f"llama.{key}", UINT32, number) for key, number in numbers.items()),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, config.rms_norm_eps),
        entry("llama.rope.freq_base", FLOAT32, config.rope_parameters["rope_theta"]),
        entry("tokenizer.ggml.model", STRING, "llama"),
        array("tokenizer.ggml.tokens", STRING, ["<unk>", "<s>", "</s>", *(f"t{index}" for index in range(3, count))]),
        array("tokenizer.ggml.scores", FLOAT32, [0.0] * count),
        array("tokenizer.ggml.token_type", INT32, [UNKNOWN, CONTROL, CONTROL] + [NORMAL] * (count - 3)),
        entry("tokenizer.ggml.bos_token_id", UINT32, 1),
        entry("tokenizer.ggml.eos_token_id", UINT32, 2),
    ]


def renamed(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in OUTER:
        return f"{OUTER[stem]}.weight"
    _, _, index, part = stem.split(".", 3)
    return f"blk.{index}.{LAYER[part]}.weight"


def arranged(name: str, tensor: torch.Tensor, config: transformers.LlamaConfig) -> torch.Tensor:
    """llama.cpp turns pairs of neighbours where the reference turns halves of a head: rows change places."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for part, count in heads.items():
        if part in name:
            rows, width = tensor.shape
            tensor = tensor.reshape(count, 2, rows // count // 2, width).swapaxes(1, 2).reshape(rows, width)
    return tensor


def pad(file: BinaryIO) -> None:
    file.write(b"\0" * (-file.tell() % ALIGNMENT))


def data(tensor: torch.Tensor, dtype: torch.dtype) -> np.ndarray:
    """Its bytes; those of one axis, norms, are float32 in any file."""
    if tensor.dim() == 1 or dtype == torch.float32:
        return np.ascontiguousarray(tensor.float().numpy())
    return np.ascontiguousarray(tensor.to(dtype).view(torch.int16).numpy())


def write(model: transformers.LlamaForCausalLM, path: Path, dtype: torch.dtype) -> None:
    tensors = model.state_dict()
    entries = metadata(model.config)
    with path.open("wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries)))
        file.write(b"".join(entries))
        offset = 0
        for name, tensor in tensors.items():
            kept = torch.float32 if tensor.dim() == 1 else dtype
            # Lengths are written the fastest first.
            lengths = tuple(reversed(tensor.shape))
            head = string(renamed(name)) + struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths)
            file.write(head + struct.pack("<IQ", KINDS[kept], offset))
            offset += -(-tensor.numel() * kept.itemsize // ALIGNMENT) * ALIGNMENT
        pad(file)
        for name, tensor in tensors.items():
            data(arranged(name, tensor, model.config), dtype).tofile(file)
            pad(file)
