"""Components that pipelines share: CLIP's and T5's text encoders with their tokenizers, and the autoencoder."""

from __future__ import annotations

from typing import Any

import torch
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, T5Config, T5EncoderModel, T5Tokenizer

from weft_reference import weights
from weft_reference.byte_pairs import vocabulary
from weft_reference.diffusion import diffusers
from weft_reference.models.stable_diffusion import AUTOENCODER
from weft_reference.pieces import pieces

POSITIONS = 20
TEXT = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}
T5 = {"d_model": 12, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 3, "feed_forward_proj": "gated-gelu"}


def filled(model: Any) -> Any:
    """The model with all its tensors filled."""
    weights.fill(model.float().eval())
    return model


def clip(projected: bool = False, **changes: Any) -> Any:
    size = len(vocabulary())
    ids = {"vocab_size": size, "bos_token_id": size - 2, "eos_token_id": size - 1, "pad_token_id": size - 1}
    config = CLIPTextConfig(**TEXT | ids | {"max_position_embeddings": POSITIONS, "projection_dim": 10} | changes)
    torch.manual_seed(0)
    return filled((CLIPTextModelWithProjection if projected else CLIPTextModel)(config))


def t5(**changes: Any) -> Any:
    torch.manual_seed(0)
    return filled(T5EncoderModel(T5Config(vocab_size=len(pieces()), **T5 | changes)))


def t5_tokenizer() -> Any:
    return T5Tokenizer(vocab=[(piece, score) for piece, score in pieces()], extra_ids=0, model_max_length=512)


def autoencoder(**changes: Any) -> Any:
    torch.manual_seed(0)
    return filled(diffusers.AutoencoderKL(**AUTOENCODER | changes))


def denoiser(name: str, **config: Any) -> Any:
    torch.manual_seed(0)
    return filled(getattr(diffusers, name)(**config))
