"""Images and text: the shapes of published checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
import transformers

from published.made import Checkpoint, floats, ids


def clip() -> Checkpoint:
    """openai/clip-vit-base-patch32: one image and two texts of 16 tokens, the last of which ends the text."""
    config = transformers.CLIPConfig()
    texts = ids(config.text_config.vocab_size - 2, 2, 16)
    texts[:, -1] = config.text_config.vocab_size - 1
    config.text_config.eos_token_id = config.text_config.vocab_size - 1
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts), "pixel_values": floats(1, 3, 224, 224)}
    return Checkpoint("CLIPModel", config, inputs)


def smolvlm() -> Checkpoint:
    """HuggingFaceTB/SmolVLM-500M-Instruct: one image of 512 px among 64 tokens of text."""
    text = {
        "model_type": "llama",
        "hidden_size": 960,
        "num_hidden_layers": 32,
        "num_attention_heads": 15,
        "num_key_value_heads": 5,
        "intermediate_size": 2560,
        "vocab_size": 49280,
        "head_dim": 64,
        "rope_theta": 100_000,
        "pad_token_id": 2,
    }
    vision = {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "image_size": 512,
        "patch_size": 16,
    }
    image = 49190
    config = transformers.SmolVLMConfig(text_config=text, vision_config=vision, scale_factor=4, image_token_id=image)
    texts = ids(49000, 1, 64 + 64)
    # Patches of 32 x 32, of which 4 x 4 are a token each.
    texts[:, 8 : 8 + 64] = image
    pictures = {"pixel_values": floats(1, 1, 3, 512, 512), "pixel_attention_mask": np.ones((1, 1, 512, 512), np.int64)}
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts)} | pictures
    return Checkpoint("SmolVLMForConditionalGeneration", config, inputs, torch.bfloat16)


def qwen2_vl() -> Checkpoint:
    """Qwen/Qwen2-VL-2B-Instruct: one image of 448 px among 64 tokens of text."""
    text = {
        "hidden_size": 1536,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "intermediate_size": 8960,
        "vocab_size": 151_936,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
        "tie_word_embeddings": True,
    }
    config = transformers.Qwen2VLConfig(
        text_config=text, vision_config={"hidden_size": 1536}, tie_word_embeddings=True
    )
    texts = ids(150_000, 1, 64 + 256)
    # Patches of 14 px, 32 x 32, of which 2 x 2 are a token.
    texts[:, 8] = config.vision_start_token_id
    texts[:, 9 : 9 + 256] = config.image_token_id
    inputs = {
        "input_ids": texts,
        "attention_mask": np.ones_like(texts),
        "pixel_values": floats(32 * 32, 3 * 2 * 14 * 14),
        "image_grid_thw": np.array([[1, 32, 32]], np.int64),
    }
    return Checkpoint("Qwen2VLForConditionalGeneration", config, inputs, torch.bfloat16)


def llava() -> Checkpoint:
    """llava-hf/llava-1.5-7b-hf: a quarter of its text model's layers; one image of 336 px among 64 tokens of text."""
    text = {"model_type": "llama", "num_hidden_layers": 8, "vocab_size": 32_064, "max_position_embeddings": 4096}
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "image_size": 336,
        "patch_size": 14,
    }
    image = 32_000
    config = transformers.LlavaConfig(text_config=text, vision_config=vision, image_token_id=image)
    texts = ids(image, 1, 64 + 576)
    texts[:, 8 : 8 + 576] = image
    inputs = {"input_ids": texts, "attention_mask": np.ones_like(texts), "pixel_values": floats(1, 3, 336, 336)}
    return Checkpoint("LlavaForConditionalGeneration", config, inputs, torch.bfloat16)


CHECKPOINTS: Mapping[str, Callable[[], Checkpoint]] = {
    "clip": clip,
    "smolvlm": smolvlm,
    "qwen2_vl": qwen2_vl,
    "llava": llava,
}
