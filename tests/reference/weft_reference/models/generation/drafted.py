"""Assisted decoding by a drafter that reads the target's keys, values and hidden states: Gemma 4 with its assistant."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers
from transformers.generation import candidate_generator

from weft_reference import weights
from weft_reference.cases import versions
from weft_reference.models.gemma4_assistant import all_shared

VOCAB, WIDTH = 60, 16
COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "intermediate_size": 20,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "global_head_dim": 8,
    "sliding_window": 6,
    "max_position_embeddings": 96,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 0,
    "eos_token_id": None,
    "pad_token_id": 0,
}
TARGET = {
    **COMMON,
    "tie_word_embeddings": False,
    "hidden_size_per_layer_input": 4,
    "vocab_size_per_layer_input": VOCAB,
    "num_hidden_layers": 5,
    "num_kv_shared_layers": 1,
    "layer_types": ["sliding_attention", "full_attention"] * 2 + ["full_attention"],
}
ASSISTANT = {
    **COMMON,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
}
PROMPTS = [[5, 9, 17, 3, 41], list(range(20, 34)), [7]]
NEW_TOKENS, DRAFTED = 24, 4


def models() -> tuple[Any, Any]:
    """The target and its assistant, weights by the rule."""
    text = transformers.Gemma4TextConfig(**ASSISTANT)
    config = transformers.Gemma4AssistantConfig(text_config=text, backbone_hidden_size=WIDTH)
    target = transformers.Gemma4ForCausalLM(transformers.Gemma4TextConfig(**TARGET)).eval()
    assistant = transformers.Gemma4AssistantForCausalLM(config).eval()
    for model in (target, assistant):
        weights.fill(model)
    assistant.generation_config.num_assistant_tokens = DRAFTED
    return target, assistant


def stored(which: int, name: str) -> bytes:
    """A file of a stored model."""
    with all_shared(transformers.Gemma4TextConfig), tempfile.TemporaryDirectory() as folder:
        models()[which].save_pretrained(folder)
        return (Path(folder) / name).read_bytes()


def cases() -> Any:
    """Prompts with the tokens of the target alone, and what was drafted after the prompt."""
    with all_shared(transformers.Gemma4TextConfig), torch.no_grad():
        target, assistant = models()
        found = [case(target, assistant, prompt) for prompt in PROMPTS]
    return {"format": 1, "reference": versions(), "new_tokens": NEW_TOKENS, "drafted": DRAFTED, "cases": found}


def case(target: Any, assistant: Any, prompt: list[int]) -> Any:
    ids = torch.tensor([prompt])
    options: dict[str, Any] = {"max_new_tokens": NEW_TOKENS, "do_sample": False}
    alone = target.generate(ids, **options)
    drafts: list[list[int]] = []
    generator = candidate_generator.SinglePositionMultiTokenCandidateGenerator
    plain = generator.get_candidates

    def noted(self: Any, input_ids: torch.Tensor, **given: Any) -> Any:
        candidates, logits = plain(self, input_ids, **given)
        drafts.append(candidates[0, input_ids.shape[1] :].tolist())
        return candidates, logits

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(generator, "get_candidates", noted))
        assisted = target.generate(ids, assistant_model=assistant, **options)
    assert assisted.tolist() == alone.tolist(), (assisted, alone)
    first = next(draft for draft in drafts if draft)
    return {"prompt": prompt, "sequence": alone[0].tolist(), "first_draft": first}
