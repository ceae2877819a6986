"""Gemma 4's assistants: both ways to logits, contexts longer than windows, padding, head sizes by layer, cut sliding caches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, integers

Changes = dict[str, Any]
MODELS = ROOTS = ("gemma4_assistant", "gemma4_unified_assistant")
PREFIXES = {"gemma4_assistant": "Gemma4", "gemma4_unified_assistant": "Gemma4Unified"}
BACKBONE = 10
KINDS = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"]
TEXT: Changes = {
    "vocab_size": 96,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "global_head_dim": 8,
    "sliding_window": 5,
    "layer_types": KINDS,
    "max_position_embeddings": 96,
}
NO_EMBEDDINGS: Changes = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
ORDERED: Changes = {"use_ordered_embeddings": True, "num_centroids": 12, "centroid_intermediate_top_k": 3}
KEYS_AS_VALUES: Changes = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
ROPES: Changes = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 3000.0},
}


@contextmanager
def reads_another_model() -> Iterator[None]:
    """The reference with the keys and values of another model as tensors of their own, in place of a dictionary of pairs.

    In 5.23.0 `kv_sharing_modes` refuses a decoder all of whose layers share keys and values, as the assistants' configurations
    demand it: none of its layers has its own.
    """
    with ExitStack() as stack:
        for prefix in PREFIXES.values():
            stack.enter_context(all_shared(getattr(transformers, f"{prefix}TextConfig")))
            model = getattr(transformers, f"{prefix}AssistantForCausalLM")
            stack.enter_context(mock.patch.object(model, "forward", paired(model.forward)))
        yield


def all_shared(config: type[PreTrainedConfig]) -> Any:
    plain = config.kv_sharing_modes.fget

    def modes(self: Any) -> list[str | None]:
        return ["reuse"] * self.num_hidden_layers if self.num_kv_shared_layers == self.num_hidden_layers else plain(self)

    return mock.patch.object(config, "kv_sharing_modes", property(modes))


def paired(plain: Any) -> Any:
    def forward(self: Any, **given: Any) -> Any:
        pairs: dict[str, dict[str, torch.Tensor]] = {}
        for name in [name for name in given if name.startswith("shared_kv_states.")]:
            _, kind, part = name.split(".")
            pairs.setdefault(kind, {})[part] = given.pop(name)
        states = {kind: (pair["key"], pair["value"]) for kind, pair in pairs.items()}
        return plain(self, shared_kv_states=states, **given)

    return forward


def ordered(key: str, stored: Store = stores.whole) -> Store:
    """Stores the model with an order of tokens, drawn by this key, in place of zeros."""

    def store(model: PreTrainedModel, folder: Path) -> None:
        place = model.masked_embedding.token_ordering
        drawn = np.argsort(floats(f"{key}.order", tuple(place.shape)), kind="stable")
        place.copy_(torch.from_numpy(drawn))
        stored(model, folder)

    return store


def with_unread_projections(model: PreTrainedModel, folder: Path) -> None:
    """Stores projections of keys and values beside, which checkpoints may hold and no layer reads."""
    model.save_pretrained(folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for part in ("k_proj", "v_proj", "k_norm"):
        tensors[f"model.layers.0.self_attn.{part}.weight"] = torch.ones(3)
    save_file(tensors, path, metadata={"format": "pt"})


def config(model: str, text: Changes | None = None, **changes: Any) -> PreTrainedConfig:
    prefix = PREFIXES[model]
    own = {} if "unified" in model else NO_EMBEDDINGS
    made = getattr(transformers, f"{prefix}TextConfig")(**(TEXT | own | (text or {})))
    return getattr(transformers, f"{prefix}AssistantConfig")(**({"text_config": made, "backbone_hidden_size": BACKBONE} | changes))


def shapes(text: PreTrainedConfig, batch: int, keys: int, sliding: int) -> dict[str, tuple[int, ...]]:
    """Of the other model's keys, by the type of the layers that read them."""
    found = {"full_attention": (batch, 1, keys, 4), "sliding_attention": (batch, 1, sliding, 4)}
    for index, kind in enumerate(text.layer_types):
        layer = text.per_layer_config[index]
        found[kind] = (batch, layer.num_key_value_heads, found[kind][2], layer.head_dim)
    return found


def inputs(
    chosen: PreTrainedConfig, key: str, sequence: int, keys: int, sliding: int | None, batch: int = 2
) -> dict[str, np.ndarray]:
    width = 2 * chosen.backbone_hidden_size
    made = {"inputs_embeds": floats(f"{key}.embeds", (batch, sequence, width), -2.0, 2.0)}
    made["position_ids"] = np.tile(np.arange(keys - 1, keys - 1 + sequence), (batch, 1))
    for kind, shape in shapes(chosen.text_config, batch, keys, sliding or keys).items():
        for part in ("key", "value"):
            name = f"shared_kv_states.{kind}.{part}"
            made[name] = floats(f"{key}.{name}", shape, -1.5, 1.5)
    return made


def case(
    model: str,
    name: str,
    notes: str,
    sequence: int = 1,
    keys: int = 9,
    sliding: int | None = None,
    store: Store | None = None,
    given: Changes | None = None,
    key: str | None = None,
    **changes: Any,
) -> Case:
    written = changes.pop("written", {})
    chosen = config(model, **changes)
    if chosen.use_ordered_embeddings:
        store = ordered(key or name, store or stores.whole)
    made = inputs(chosen, key or name, sequence, keys, sliding) | (given or {})
    made = {name: value for name, value in made.items() if value is not None}
    return assistant(f"{model}/{name}", chosen, made, notes, store, written=written)


def assistant(path: str, chosen: PreTrainedConfig, made: dict[str, np.ndarray], notes: str, store: Store | None, **more: Any) -> Case:
    # In 5.23.0 several positions are run where hidden states are asked for alone: otherwise embeddings of each layer are cut, of
    # which there are none.
    forward = {"output_hidden_states": True} if made["inputs_embeds"].shape[1] > 1 else {}
    model_class = f"{PREFIXES[chosen.model_type]}AssistantForCausalLM"
    return Case(path, model_class, chosen, made, notes, store, forward, within=reads_another_model, **more)


def padded(keys: int, first: int, last: int) -> dict[str, np.ndarray]:
    """The first text is padded on the left, the second on the right."""
    mask = np.ones((2, keys), np.int64)
    mask[0, :first], mask[1, keys - last :] = 0, 0
    return {"attention_mask": mask}


def published(model: str, text: Changes) -> Changes:
    """`text_config` as published files have it: head sizes by the type of a layer."""
    flat = getattr(transformers, f"{PREFIXES[model]}TextConfig")(**text).to_diff_dict()
    flat.pop("per_layer_config")
    names = ("global_head_dim", "num_global_key_value_heads")
    return flat | {name: text[name] for name in names if name in text}


def text_goldens(model: str) -> Iterator[Case]:
    made = partial(case, model)
    notes = "Head sizes by the type of a layer, as published files have them; keys are values in the other model."
    own = NO_EMBEDDINGS if model == "gemma4_assistant" else {}
    text = TEXT | own | KEYS_AS_VALUES | {"num_kv_shared_layers": 5}
    yield made("published", notes, text=text, written={"text_config": published(model, text)})
    sizes = [{"num_key_value_heads": 4} if kind == "sliding_attention" else {"head_dim": 10} for kind in KINDS]
    yield made("own-sizes", "Sizes of heads layer by layer.", text={"per_layer_config": dict(enumerate(sizes))})
    yield made("ropes", "Rotary embeddings of its own.", 3, text={"rope_parameters": ROPES, "attention_bias": True})
    notes = "A window of 6 for both directions, which is halved."
    yield made("bidirectional", notes, 3, 14, text={"use_bidirectional_attention": "all", "sliding_window": 6})
    unset = {"layer_types": None, "num_hidden_layers": 7}
    yield made("default-layers", "Five layers with windows before each without.", text=unset)
    yield made("no-windows", "No layer has a window.", 2, text={"layer_types": ["full_attention"] * 2, "num_hidden_layers": 2})
    other = {"hidden_activation": "silu", "rms_norm_eps": 1e-3, "final_logit_softcapping": 2.0, "tie_word_embeddings": False}
    yield made("activation", "SiLU; logits are not capped and tied, whatever the text's configuration says.", text=other)
    if model == "gemma4_unified_assistant":
        yield made("wide", "MLPs twice as wide.", text={"use_double_wide_mlp": True})


def goldens() -> Iterator[Case]:
    for model in MODELS:
        made = partial(case, model)
        yield made("base", "One token; a context longer than the window.")
        yield made("several", "Four tokens, each of which sees one key less.", 4, 12)
        # The reference itself is off by 5.8e-2 in bfloat16 where these are drawn by the case's name.
        notes, window = "More tokens than the window is long.", {"sliding_window": 2}
        yield made("beyond", notes, 9, 12, key="beyond.1", text=window)
        yield made("wide-window", "A window longer than the context.", 3, 6, text={"sliding_window": 30})
        yield made("padded", "Padding on both sides.", 3, 12, given=padded(12, 4, 2))
        yield made("cut", "The other model's sliding cache holds the last keys alone.", 2, 14, 8)
        yield made("cut-padded", "The same with padding.", 2, 14, 8, given=padded(14, 9, 2))
        far = integers("positions", (2, 3), 0, 60)
        yield made("positions", "Positions as given.", 3, given={"position_ids": far})
        yield made("no-positions", "Positions from 0 on, as none are given.", 3, given={"position_ids": None})
        yield made("untied", "A table of logits of its own.", tie_word_embeddings=False)
        yield made("ordered", "Logits of the tokens of three centroids of twelve.", **ORDERED)
        notes = "The same of four tokens of a padded batch, with a table of their own."
        # The third score of clusters and the fourth are apart by a twentieth of the largest, in all positions.
        few = {"tie_word_embeddings": False, "key": "ordered-several.2", **ORDERED}
        yield made("ordered-several", notes, 4, 12, given=padded(12, 4, 2), **few)
        all_of = ORDERED | {"centroid_intermediate_top_k": 12}
        yield made("ordered-all", "Logits of the tokens of all centroids.", 2, **all_of)
        yield from text_goldens(model)
        yield made("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
        yield made("unread", "Projections that no layer reads.", store=with_unread_projections)
