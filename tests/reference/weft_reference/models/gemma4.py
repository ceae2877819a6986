"""Gemma 4: layers that share keys and values, embeddings by layer, experts; images and recordings, either or both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats, text_batch
from weft_reference.vision_tasks import VisionTaskCase, newest

Changes = dict[str, Any]
MODELS = ROOTS = ("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text")
PREFIXES = {"gemma4": "Gemma4", "gemma4_unified": "Gemma4Unified", "embedding_gemma2": "EmbeddingGemma2"}
IMAGE, AUDIO, BEGIN, END = 90, 91, 92, 93
WITHOUT = ("image_hidden_states", "audio_hidden_states", "router_logits", "shared_kv_states")
STORED = "model.safetensors as save_pretrained writes it."
KINDS = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
TEXT: Changes = {
    "vocab_size": 99,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "global_head_dim": 8,
    "sliding_window": 5,
    "layer_types": KINDS,
    "max_position_embeddings": 96,
    "pad_token_id": 0,
}
PER_LAYER: Changes = {"hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 99}
NO_PER_LAYER: Changes = PER_LAYER | {"hidden_size_per_layer_input": 0}
EXPERTS: Changes = NO_PER_LAYER | {
    "enable_moe_block": True,
    "num_experts": 4,
    "top_k_experts": 2,
    "moe_intermediate_size": 10,
}
KEYS_AS_VALUES: Changes = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
SHARED: Changes = {"num_kv_shared_layers": 2, "use_double_wide_mlp": True}
# As published files have it.
PUBLISHED: Changes = {"per_layer_config": None, "global_head_dim": 8}
ROPES: Changes = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 3000.0},
}
TEXT_CASES: dict[str, Changes] = {
    "shared": SHARED,
    "one-shared": {"num_kv_shared_layers": 1},
    "keys-as-values": KEYS_AS_VALUES,
    "published": KEYS_AS_VALUES | {"written": PUBLISHED | {"num_global_key_value_heads": 1}},
    "default-layers": {"layer_types": None, "num_hidden_layers": 7, "written": {"layer_types": None}},
    "softcap": {"final_logit_softcapping": 3.0, "attention_bias": True, "tie_word_embeddings": False},
    "ropes": {"rope_parameters": ROPES},
    "own-sizes": {
        "per_layer_config": {at: {"num_key_value_heads": 4} if at % 2 == 0 else {"head_dim": 10} for at in range(4)}
    },
    "defaults": {
        "layer_types": None,
        "num_hidden_layers": 7,
        "written": {"layer_types": None, "rope_parameters": None},
    },
    "bidirectional": {"use_bidirectional_attention": "all", "sliding_window": 6},
}
VISION: Changes = {
    "hidden_size": 12,
    "intermediate_size": 14,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "head_dim": 8,
    "pooling_kernel_size": 2,
    "patch_size": 2,
    "position_embedding_size": 12,
}
SOUND: Changes = {
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "subsampling_conv_channels": [8, 4],
    "conv_kernel_size": 3,
    "attention_chunk_size": 4,
    "attention_context_left": 5,
    "use_clipped_linears": False,
    "output_proj_dims": 10,
}
UNIFIED_VISION: Changes = {
    "patch_size": 2,
    "pooling_kernel_size": 2,
    "mm_embed_dim": 12,
    "mm_posemb_size": 9,
    "output_proj_dims": 12,
}
Rows = list[list[str]]
BOTH: Rows = [["text", "image", "audio", "text"], ["audio", "text", "image", "image", "text"]]
GRIDS = ((4, 2), (2, 2), (6, 4), (4, 4))
FRAMES = {"gemma4": (23, 41, 30), "gemma4_unified": (3, 5, 2)}


def text_config(model: str, **changes: Any) -> Changes:
    own: Changes = {"use_bidirectional_attention": None} if "unified" in model else PER_LAYER
    if model.startswith("embedding"):
        own = {"hidden_size_per_layer_input": 4, "num_global_key_value_heads": 1, "embedding_dim": 10}
    return TEXT | own | changes


def config(
    model: str, text: Changes | None = None, vision: Changes | None = None, audio: Changes | None = None, **changes: Any
) -> PreTrainedConfig:
    unified = model == "gemma4_unified"
    sound: Changes = {"audio_embed_dim": 7} if unified else SOUND
    return getattr(transformers, f"{PREFIXES[model]}Config")(
        text_config=text_config(model, **(text or {})),
        vision_config=(UNIFIED_VISION if unified else VISION | {"model_type": "gemma4_vision"}) | (vision or {}),
        audio_config=None if audio is None else sound | audio | ({} if unified else {"model_type": "gemma4_audio"}),
        **({"image_token_id": IMAGE, "audio_token_id": AUDIO, "video_token_id": 98} | changes),
    )


def clipped(model: PreTrainedModel, folder: Path) -> None:
    """Linear layers clamp what lies far from 0."""
    bounds = {"input_min": -0.7, "input_max": 0.9, "output_min": -0.8, "output_max": 0.6}
    for name, tensor in model.named_buffers():
        leaf = name.rsplit(".", 1)[-1]
        if leaf in bounds:
            tensor.copy_(torch.tensor(bounds[leaf]))
    model.save_pretrained(folder)


def images(
    config: PreTrainedConfig, grids: list[tuple[int, int]], name: str
) -> tuple[dict[str, np.ndarray], list[int]]:
    """Columns and rows of patches of each image, padded to as many; how many tokens each becomes."""
    vision = config.vision_config
    unified = config.model_type == "gemma4_unified"
    edge = vision.patch_size * (vision.pooling_kernel_size if unified else 1)
    square = 1 if unified else vision.pooling_kernel_size**2
    most = max(columns * rows for columns, rows in grids)
    places = np.full((len(grids), most, 2), -1, np.int64)
    for index, (columns, rows) in enumerate(grids):
        for patch in range(columns * rows):
            places[index, patch] = patch % columns, patch // columns
    pixels = floats(f"pixels.{name}", (len(grids), most, 3 * edge * edge), 0.0, 1.0)
    return {"pixel_values": pixels, "image_position_ids": places}, [columns * rows // square for columns, rows in grids]


def recordings(config: PreTrainedConfig, lengths: list[int], name: str) -> tuple[dict[str, np.ndarray], list[int]]:
    unified = config.model_type == "gemma4_unified"
    width = config.audio_config.audio_embed_dim if unified else config.audio_config.subsampling_conv_channels[0]
    made = {"input_features": floats(f"spectra.{name}", (len(lengths), max(lengths), width), -2.0, 2.0)}
    made["input_features_mask"] = np.arange(max(lengths)) < np.array(lengths)[:, None]
    return made, [length if unified else -(-length // 4) for length in lengths]


def case(
    model: str,
    name: str,
    head: str,
    notes: str,
    rows: Rows,
    padding: str = "left",
    store: Any = None,
    path: str | None = None,
    grids: tuple[tuple[int, int], ...] = GRIDS,
    **changes: Any,
) -> Case:
    written = changes.pop("written", {})
    chosen = config(model, **changes)
    kinds = [kind for row in rows for kind in row]
    inputs: dict[str, np.ndarray] = {}
    counts: dict[str, Iterator[int]] = {}
    if count := kinds.count("image"):
        made, features = images(chosen, [grids[index % len(grids)] for index in range(count)], name)
        inputs, counts = inputs | made, counts | {"image": iter(features)}
    if count := kinds.count("audio"):
        frames = FRAMES.get(model, FRAMES["gemma4"])
        made, features = recordings(chosen, [frames[index % len(frames)] for index in range(count)], name)
        inputs, counts = inputs | made, counts | {"audio": iter(features)}
    tokens = {"image": IMAGE, "audio": AUDIO}
    texts = []
    for index, row in enumerate(rows):
        text = [10 + index]
        for kind in row:
            text += [11, 12, 13] if kind == "text" else [BEGIN, *[tokens[kind]] * next(counts[kind]), END]
        texts.append(text)
    longest = max(map(len, texts))
    ids, mask = np.zeros((2, len(texts), longest), np.int64)
    for row, text in enumerate(texts):
        at = slice(longest - len(text), longest) if padding == "left" else slice(0, len(text))
        ids[row, at], mask[row, at] = text, 1
    inputs |= {"input_ids": ids, "attention_mask": mask}
    # What embeds reads no kinds of tokens.
    told = {} if model.startswith("embedding") else {"mm_token_type_ids": (ids == IMAGE) + 3 * (ids == AUDIO)}
    path, model_class = path or f"{model}/{name}", f"{PREFIXES[model]}{head}"
    return Case(path, model_class, chosen, inputs, notes, store, told=told, written=written, without=WITHOUT)


def text_case(model: str, name: str, head: str, notes: str, padding: str = "right", **changes: Any) -> Case:
    made = text_batch(88, (11, 7), padding, key="gemma4")  # type: ignore[arg-type]
    inputs = {field: made[field] for field in ("input_ids", "attention_mask")}
    written, store = changes.pop("written", {}), changes.pop("store", None)
    path = changes.pop("path", f"{model}/{name}")
    prefix = PREFIXES[model.removesuffix("_text")]
    chosen = getattr(transformers, f"{prefix}TextConfig")(**text_config(model, **changes))
    return Case(path, f"{prefix}{head}", chosen, inputs, notes, store, written=written, without=WITHOUT)


def text_goldens(model: str) -> Iterator[Case]:
    writer = "ForCausalLM"
    yield text_case(model, "base", "TextModel", "Two texts, the second padded on the right.")
    yield text_case(model, "causal-lm", writer, "Two texts, the second padded on the right.")
    yield text_case(model, "left-padding", writer, "The second text is padded on the left.", "left")
    changes = dict(TEXT_CASES)
    if model == "gemma4_text":
        changes |= {"experts": EXPERTS, "no-embeddings": NO_PER_LAYER, "experts-shared": EXPERTS | PER_LAYER | SHARED}
    for name, change in changes.items():
        head = "TextModel" if name == "bidirectional" else writer
        notes = ", ".join(f"{field} {value}" for field, value in change.items())
        yield text_case(model, name, head, f"{notes}.", **change)
    yield text_case(model, "file", writer, STORED, store=stores.whole, **SHARED)


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model in ("gemma4_text", "gemma4_unified_text"):
        yield from text_goldens(model)
    for model in ("gemma4", "gemma4_unified"):
        yield from multimodal_goldens(model)
    yield from newest.gemma4(config)


def multimodal_goldens(model: str) -> Iterator[Case]:
    writer = "ForConditionalGeneration"
    heard: Changes = {"audio": {}}
    notes = "Two texts with images and recordings, one padded on the left."
    yield case(model, "base", "Model", notes, BOTH, **heard)
    yield case(model, "next-token", writer, notes, BOTH, **heard)
    yield case(model, "padded-right", writer, "The same, padded on the right.", BOTH, "right", **heard)
    seen = [["image", "text"], ["text", "image", "image", "text"]]
    yield case(model, "images-alone", writer, "Texts with images and no recordings.", seen, **heard)
    yield case(model, "deaf", writer, "A model without recordings.", seen, "right")
    spoken = [["audio", "text", "audio", "text"], ["text", "audio", "text"]]
    yield case(model, "audio-alone", writer, "Texts with recordings and no images.", spoken, **heard)
    alone = [["text", "text"], ["text"]]
    yield case(model, "text-alone", writer, "Texts alone, one padded on the left.", alone, **heard)
    together: Changes = {"use_bidirectional_attention": "vision", "sliding_window": 4}
    yield case(model, "vision", writer, "Tokens of an image see each other.", BOTH, text=together, **heard)
    yield case(model, "vision-right", writer, "The same, padded on the right.", seen, "right", text=together)
    capped = {"final_logit_softcapping": 3.0} | SHARED
    untied = {"tie_word_embeddings": False}
    notes = "Soft-capped scores of a table of their own."
    yield case(model, "softcap", writer, notes, seen, text=capped | untied, **untied)
    if model == "gemma4":
        rope = {"rope_type": "axial", "rope_theta": 30.0}
        own = {"standardize": True, "num_key_value_heads": 1, "rope_parameters": rope}
        larger = {"pooling_kernel_size": 3, "position_embedding_size": 20}
        grids = ((6, 3), (3, 3), (3, 9))
        notes = "Means of three by three patches, standardised."
        yield case(model, "standardized", writer, notes, seen, vision=own | larger, text=EXPERTS, grids=grids)
        bounds = {"use_clipped_linears": True}
        longer = {"gradient_clipping": 0.9, "attention_logit_cap": 2.0, "attention_chunk_size": 5}
        longer |= {"residual_weight": 0.25}
        notes = "Linear layers that clamp; states that are clamped."
        yield case(model, "clipped", writer, notes, BOTH, store=clipped, vision=bounds, audio=bounds | longer)
    yield case(model, "file", writer, STORED, BOTH, store=stores.whole, **heard)


def drawn_text(rng: Random, model: str) -> Changes:
    layers, heads = rng.randint(2, 6), rng.choice((2, 4))
    kinds = [rng.choice(KINDS[:2]) for _ in range(layers - 1)] + ["full_attention"]
    made: Changes = {
        "hidden_size": rng.randint(6, 30),
        "intermediate_size": rng.randint(6, 40),
        "num_hidden_layers": layers,
        "layer_types": kinds,
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice((1, 2)),
        "head_dim": 2 * rng.randint(2, 6),
        "global_head_dim": 2 * rng.randint(4, 8),
        "sliding_window": rng.randint(1, 12),
        "attention_bias": rng.random() < 0.3,
        "final_logit_softcapping": rng.choice((None, 5.0)),
    }
    first = layers - rng.randint(1, layers - 1)
    if set(kinds[:first]) == set(kinds):
        made |= {"num_kv_shared_layers": layers - first, "use_double_wide_mlp": rng.random() < 0.5}
    if rng.random() < 0.4:
        made |= KEYS_AS_VALUES
    if "unified" not in model:
        made |= rng.choice((EXPERTS, PER_LAYER, NO_PER_LAYER, EXPERTS | PER_LAYER))
    return made


def random_text_case(model: str, rng: Random, path: str) -> Case:
    head, padding = rng.choice(("TextModel", "ForCausalLM")), rng.choice(("left", "right"))
    return text_case(
        model, "random", head, "Drawn at random.", padding, path=path, store=stores.whole, **drawn_text(rng, model)
    )


def random_case(model: str, rng: Random, path: str) -> Case:
    rows = [[rng.choice(("image", "audio", "text")) for _ in range(rng.randint(1, 4))] for _ in range(2)]
    rows[0] += ["image", "audio"]
    rows = [[*row, "text"] for row in rows]
    text = drawn_text(rng, model) | {"use_bidirectional_attention": rng.choice((None, "vision"))}
    heads = rng.choice((1, 2, 4))
    vision: Changes = {}
    audio: Changes = {}
    if model == "gemma4":
        vision = {"num_attention_heads": heads, "num_key_value_heads": heads, "num_hidden_layers": rng.randint(1, 3)}
        audio = {"hidden_size": heads * 6, "num_attention_heads": heads, "num_hidden_layers": rng.randint(1, 3)}
    head = "ForConditionalGeneration"
    changes = {"text": text, "vision": vision, "audio": audio}
    padding = rng.choice(("left", "right"))
    return case(model, "random", head, "Drawn at random.", rows, padding, store=stores.whole, path=path, **changes)


DRAWN = {
    "gemma4": partial(random_case, "gemma4"),
    "gemma4_unified": partial(random_case, "gemma4_unified"),
    "gemma4_text": partial(random_text_case, "gemma4_text"),
    "gemma4_unified_text": partial(random_text_case, "gemma4_unified_text"),
}
