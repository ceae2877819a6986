"""Text: encoders, decoders, mixtures of experts, state spaces; and time series: the shapes of published checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import transformers

from published.made import Checkpoint, floats, ids, text


def bert() -> Checkpoint:
    """google-bert/bert-base-uncased: a text of 128 tokens."""
    config = transformers.BertConfig()
    return Checkpoint("BertModel", config, text(config.vocab_size, 128))


def perceiver() -> Checkpoint:
    """deepmind/language-perceiver: a text of 2048 bytes."""
    return Checkpoint("PerceiverForMaskedLM", transformers.PerceiverConfig(), text(262, 2048))


def t5() -> Checkpoint:
    """google-t5/t5-small: a text of 32 tokens."""
    config = transformers.T5Config(decoder_start_token_id=0)
    return Checkpoint("T5ForConditionalGeneration", config, text(config.vocab_size, 32))


def patchtst() -> Checkpoint:
    """ibm-granite/granite-timeseries-patchtst: seven series of 512 hours, of which 96 more are predicted."""
    config = transformers.PatchTSTConfig(
        num_input_channels=7,
        context_length=512,
        prediction_length=96,
        patch_length=12,
        patch_stride=12,
        d_model=128,
        num_attention_heads=16,
        num_hidden_layers=3,
        ffn_dim=512,
    )
    return Checkpoint("PatchTSTForPrediction", config, {"past_values": floats(1, 512, 7)})


def llama(dtype: torch.dtype) -> Checkpoint:
    """TinyLlama/TinyLlama-1.1B-Chat-v1.0, which is published in bfloat16: a prompt of 128 tokens."""
    config = transformers.LlamaConfig(
        hidden_size=2048,
        num_hidden_layers=22,
        num_attention_heads=32,
        num_key_value_heads=4,
        intermediate_size=5632,
        vocab_size=32000,
        max_position_embeddings=2048,
        rms_norm_eps=1e-5,
        tie_word_embeddings=False,
    )
    return Checkpoint("LlamaForCausalLM", config, text(config.vocab_size, 128), dtype)


def granitemoe() -> Checkpoint:
    """ibm-granite/granite-3.1-1b-a400m-instruct: a prompt of 128 tokens; 8 of 32 experts see each."""
    config = transformers.GraniteMoeConfig(
        hidden_size=1024,
        intermediate_size=512,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=8,
        num_local_experts=32,
        num_experts_per_tok=8,
        vocab_size=49155,
        embedding_multiplier=12.0,
        logits_scaling=6.0,
        residual_multiplier=0.22,
        attention_multiplier=0.015625,
        tie_word_embeddings=True,
    )
    return Checkpoint("GraniteMoeForCausalLM", config, text(config.vocab_size, 128), torch.bfloat16)


def olmoe() -> Checkpoint:
    """allenai/OLMoE-1B-7B-0924: a quarter of its layers, and a prompt of 128 tokens; 8 of 64 experts see each."""
    config = transformers.OlmoeConfig(num_hidden_layers=4, intermediate_size=1024)
    return Checkpoint("OlmoeForCausalLM", config, text(config.vocab_size, 128), torch.bfloat16)


def experts(used: int, there: int) -> Checkpoint:
    """The layers of allenai/OLMoE-1B-7B-0924, two of them, with so many experts of which a token uses so many; few words, so that its time
    is the experts'."""
    config = transformers.OlmoeConfig(
        num_hidden_layers=2, intermediate_size=1024, vocab_size=2048, num_experts=there, num_experts_per_tok=used
    )
    return Checkpoint("OlmoeForCausalLM", config, text(config.vocab_size, 128), torch.bfloat16, gguf=False)


def mamba(length: int, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """state-spaces/mamba-130m-hf: a prompt of so many tokens."""
    config = transformers.MambaConfig(num_hidden_layers=24, vocab_size=50280)
    return Checkpoint("MambaForCausalLM", config, {"input_ids": ids(config.vocab_size, 1, length)}, dtype)


def mamba2(length: int, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """AntonV/mamba2-130m-hf: a prompt of so many tokens."""
    config = transformers.Mamba2Config(
        hidden_size=768, num_heads=24, head_dim=64, n_groups=1, num_hidden_layers=24, vocab_size=50288
    )
    return Checkpoint("Mamba2ForCausalLM", config, {"input_ids": ids(config.vocab_size, 1, length)}, dtype)


CHECKPOINTS: Mapping[str, Callable[[], Checkpoint]] = {
    "t5": t5,
    "bert": bert,
    "perceiver": perceiver,
    "patchtst": patchtst,
    "granitemoe": granitemoe,
    "olmoe": olmoe,
    "experts-8-of-8": lambda: experts(8, 8),
    "experts-8-of-64": lambda: experts(8, 64),
    "experts-8-of-256": lambda: experts(8, 256),
    "experts-2-of-64": lambda: experts(2, 64),
    "experts-32-of-64": lambda: experts(32, 64),
    "mamba": lambda: mamba(512),
    "mamba-bf16": lambda: mamba(512, torch.bfloat16),
    "mamba2": lambda: mamba2(512),
    "mamba2-bf16": lambda: mamba2(512, torch.bfloat16),
    "llama": lambda: llama(torch.float32),
    "llama-bf16": lambda: llama(torch.bfloat16),
}
