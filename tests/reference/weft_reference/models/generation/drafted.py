"""Assisted decoding by drafters that read the target: Gemma 4 and Muse Glimmer, each with its assistant."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    "max_position_embeddings": 96,
    "eos_token_id": None,
    "pad_token_id": 0,
}
GEMMA4: dict[str, Any] = {
    **COMMON,
    "global_head_dim": 8,
    "sliding_window": 6,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 0,
}
PROMPTS = [[5, 9, 17, 3, 41], list(range(20, 34)), [7]]
NEW_TOKENS, DRAFTED = 24, 4


def gemma4() -> tuple[Any, Any]:
    """Layers of both kinds, of which the last reads the keys and values of an earlier one, and its assistant."""
    text = transformers.Gemma4TextConfig(
        **GEMMA4 | {"hidden_size": 12, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
    )
    own = {
        "tie_word_embeddings": False,
        "hidden_size_per_layer_input": 4,
        "vocab_size_per_layer_input": VOCAB,
        "num_hidden_layers": 5,
        "num_kv_shared_layers": 1,
        "layer_types": ["sliding_attention", "full_attention"] * 2 + ["full_attention"],
    }
    target = transformers.Gemma4ForCausalLM(transformers.Gemma4TextConfig(**GEMMA4 | own))
    config = transformers.Gemma4AssistantConfig(text_config=text, backbone_hidden_size=WIDTH)
    assistant = transformers.Gemma4AssistantForCausalLM(config)
    assistant.generation_config.num_assistant_tokens = DRAFTED
    return target, assistant


def muse_glimmer() -> tuple[Any, Any]:
    """Windows in two of three layers, whose hidden states behind two are read, and a drafter of blocks of five tokens."""
    text = {
        **COMMON,
        "num_hidden_layers": 3,
        "sliding_window": 5,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "layer_rope_theta": [10000.0, 10000.0, 0],
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 18,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "patch_size": 4,
        "pos_emb_height": 3,
        "pos_emb_width": 3,
        "layer_types": ["window_attention", "full_attention"],
    }
    config = transformers.MuseGlimmerConfig(
        text_config=text, vision_config=vision, image_token_id=VOCAB - 1, out_hidden_size=64, projector_hidden_size=22
    )
    own = {
        **{name: value for name, value in COMMON.items() if name != "vocab_size"},
        "num_hidden_layers": 2,
        "sliding_window": 6,
        "layer_types": ["sliding_attention", "full_attention"],
        "target_layer_ids": [0, 2],
        "block_size": DRAFTED + 1,
        "mask_token_id": VOCAB - 2,
    }
    assistant = transformers.MuseGlimmerAssistantModel(transformers.MuseGlimmerAssistantConfig(**own))
    return transformers.MuseGlimmerForConditionalGeneration(config), assistant


FAMILIES = {"gemma4": gemma4, "muse_glimmer": muse_glimmer}
GENERATORS = {
    "gemma4": candidate_generator.SinglePositionMultiTokenCandidateGenerator,
    "muse_glimmer": candidate_generator.DFlashTokenCandidateGenerator,
}
OPTIONS: dict[str, dict[str, Any]] = {"gemma4": {}, "muse_glimmer": {"speculation_type": "dflash"}}


@contextmanager
def models(family: str) -> Iterator[tuple[Any, Any]]:
    """The target and its assistant, weights by the rule."""
    with all_shared(transformers.Gemma4TextConfig), torch.no_grad():
        pair = FAMILIES[family]()
        for model in pair:
            weights.fill(model.eval())
        yield pair


def stored(family: str, which: int, name: str) -> bytes:
    """A file of a stored model."""
    with models(family) as pair, tempfile.TemporaryDirectory() as folder:
        pair[which].save_pretrained(folder)
        return (Path(folder) / name).read_bytes()


def cases(family: str) -> Any:
    """Prompts with the tokens of the target alone, and what was drafted after the prompt."""
    with models(family) as (target, assistant):
        found = [case(family, target, assistant, prompt) for prompt in PROMPTS]
    return {"format": 1, "reference": versions(), "new_tokens": NEW_TOKENS, "drafted": DRAFTED, "cases": found}


def case(family: str, target: Any, assistant: Any, prompt: list[int]) -> Any:
    ids = torch.tensor([prompt])
    options: dict[str, Any] = {"max_new_tokens": NEW_TOKENS, "do_sample": False}
    alone = target.generate(ids, **options)
    drafts: list[list[int]] = []
    generator = GENERATORS[family]
    plain = generator.get_candidates

    def noted(self: Any, input_ids: torch.Tensor, **given: Any) -> Any:
        candidates, logits = plain(self, input_ids, **given)
        drafts.append(candidates[0, input_ids.shape[1] :].tolist())
        return candidates, logits

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(generator, "get_candidates", noted))
        assisted = target.generate(ids, assistant_model=assistant, **options, **OPTIONS[family])
    assert assisted.tolist() == alone.tolist(), (assisted, alone)
    first = next(draft for draft in drafts if draft)
    return {"prompt": prompt, "sequence": alone[0].tolist(), "first_draft": first}
