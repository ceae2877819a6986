"""Thinkers of Qwen's omni models: texts with images, recordings, both or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import TEXT, Changes, packed
from weft_reference.models.vision_language.packed import QWEN3_TOWER, ROPE, WINDOWED
from weft_reference.vision_tasks import VisionTaskCase, newest

AUDIO, VISION_START, VISION_END, AUDIO_START, AUDIO_END = 9, 61, 62, 63, 64
Rows = list[list[str]]
BOTH: Rows = [["text", "image", "audio", "text"], ["audio", "text", "image", "image", "text"]]


@dataclass(frozen=True)
class Thinker:
    """`recordings` are the frames of each, `heard` how many features so many become."""

    model: str
    prefix: str
    text: Changes
    vision: Changes
    audio: Changes
    changes: Changes
    recordings: tuple[int, ...]
    heard: Callable[[int], int]

    def config(
        self,
        text: Changes | None = None,
        vision: Changes | None = None,
        audio: Changes | None = None,
        **changes: Any,
    ) -> PreTrainedConfig:
        own = {
            "vision_start_token_id": VISION_START,
            "audio_start_token_id": AUDIO_START,
            "audio_end_token_id": AUDIO_END,
        }
        return getattr(transformers, f"{self.prefix}Config")(
            text_config=TEXT | self.text | (text or {}),
            vision_config=self.vision | (vision or {}),
            audio_config=self.audio | (audio or {}),
            **(own | self.changes | changes),
        )

    def case(
        self,
        name: str,
        head: str,
        notes: str,
        rows: Rows,
        padding: str = "left",
        store: Any = None,
        path: str | None = None,
        **changes: Any,
    ) -> Case:
        config = self.config(**changes)
        kinds = [kind for row in rows for kind in row]
        inputs: dict[str, np.ndarray] = {}
        images, heard = iter(()), iter(())
        if count := kinds.count("image"):
            found = packed(config, [count], name)
            inputs |= found.inputs
            images = iter(found.features)
        if count := kinds.count("audio"):
            lengths = [self.recordings[index % len(self.recordings)] for index in range(count)]
            bins, frames = config.audio_config.num_mel_bins, max(lengths)
            inputs["input_features"] = floats(f"spectra.{name}", (count, bins, frames), -2.0, 2.0)
            inputs["feature_attention_mask"] = (np.arange(frames) < np.array(lengths)[:, None]).astype(np.int64)
            heard = iter([self.heard(length) for length in lengths])
        pieces = {
            "image": lambda: [VISION_START, *[IMAGE] * next(images), VISION_END],
            "audio": lambda: [AUDIO_START, *[AUDIO] * next(heard), AUDIO_END],
            "text": lambda: [11, 12, 13],
        }
        texts = [[10 + index, *(token for kind in row for token in pieces[kind]())] for index, row in enumerate(rows)]
        longest = max(map(len, texts))
        ids, mask = np.zeros((2, len(texts), longest), np.int64)
        for row, tokens in enumerate(texts):
            at = slice(longest - len(tokens), longest) if padding == "left" else slice(0, len(tokens))
            ids[row, at], mask[row, at] = tokens, 1
        inputs |= {"input_ids": ids, "attention_mask": mask}
        without = ("router_logits", "aux_loss")
        return Case(path or f"{self.model}/{name}", self.prefix + head, config, inputs, notes, store, without=without)

    def published(self) -> Case:
        """Beside its talker, as in published files: within another configuration, under names that begin with `thinker`."""
        notes = "Weights and configuration of the thinker stand beside those of the talker."
        case = self.case("published", "ForConditionalGeneration", notes, BOTH, store=stores.whole)
        own = case.config.to_dict()
        whole = self.model.removesuffix("_thinker")
        written = dict.fromkeys(own) | {"architectures": None, "thinker_config": own, "model_type": whole}
        return replace(case, written=written, rename=beside_talker)

    def goldens(self) -> Iterator[Case | VisionTaskCase]:
        writer = "ForConditionalGeneration"
        yield self.case("base", "Model", "Two texts with images and recordings, one padded on the left.", BOTH)
        yield self.case("next-token", writer, "Two texts with images and recordings, one padded on the left.", BOTH)
        yield self.case("padded-right", writer, "The same, padded on the right.", BOTH, "right")
        images = [["image", "text"], ["text", "image", "image", "text"]]
        yield self.case("images-alone", writer, "Texts with images and no recordings.", images)
        audio = [["audio", "text", "audio", "text"], ["text", "audio", "text"]]
        yield self.case("audio-alone", writer, "Texts with recordings and no images.", audio)
        yield self.case("short", writer, "A recording shorter than a chunk.", [["image", "text", "audio", "text"]])
        yield self.case("text-alone", writer, "Texts alone, one padded on the left.", [["text", "text"], ["text"]])
        tied = {"tie_word_embeddings": True}
        yield self.case("tied", writer, "Scores of tokens share the table of embeddings.", BOTH, **tied)
        yield self.published()
        processor = "Qwen2_5OmniProcessor" if "2_5" in self.model else "Qwen3OmniMoeProcessor"
        yield from newest.thinker(self, processor)
        yield self.case("file", writer, "model.safetensors as save_pretrained writes it.", BOTH, store=stores.whole)

    def random_case(self, rng: Random, path: str) -> Case:
        """Other widths, layers and heads of the text and the audio encoder; other orders."""
        heads, groups, towers = rng.choice((2, 4)), rng.choice((1, 2)), rng.choice((1, 2, 4))
        width = heads * 8
        text = {
            "hidden_size": width,
            "num_attention_heads": heads,
            "num_key_value_heads": heads // groups,
            "num_hidden_layers": rng.randint(1, 3),
        }
        audio = {
            "d_model": towers * 8,
            "encoder_attention_heads": towers,
            "encoder_layers": rng.randint(1, 3),
            "output_dim": width,
        }
        rows = [[rng.choice(("image", "audio", "text")) for _ in range(rng.randint(1, 4))] for _ in range(2)]
        rows[0] += ["image", "audio"]
        rows = [[*row, "text"] for row in rows]
        vision = {"out_hidden_size": width, "depth": rng.randint(1, 3), "deepstack_visual_indexes": [0]}
        changes = {"text": text, "audio": audio, "vision": vision}
        writer, notes = "ForConditionalGeneration", "Drawn at random."
        return self.case("random", writer, notes, rows, store=stores.whole, path=path, **changes)


def beside_talker(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    named = {f"thinker.{name}": tensor for name, tensor in tensors.items()}
    named["talker.codec_head.weight"] = torch.zeros(2, 2)
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})


def halved_twice(frames: int) -> int:
    return ((frames - 1) // 2 + 1) // 2


def eighths(frames: int) -> int:
    return frames // 100 * 13 + (frames % 100 + 7) // 8


AUDIO_TOWER: Changes = {
    "num_mel_bins": 5,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 18,
    "d_model": 12,
}
THINKERS = (
    Thinker(
        "qwen2_5_omni_thinker",
        "Qwen2_5OmniThinker",
        {"hidden_size": 32, "rope_parameters": ROPE},
        WINDOWED | {"out_hidden_size": 32},
        AUDIO_TOWER | {"n_window": 4, "output_dim": 32},
        {"image_token_index": IMAGE, "audio_token_index": AUDIO},
        (5, 19, 8, 26),
        halved_twice,
    ),
    Thinker(
        "qwen3_omni_moe_thinker",
        "Qwen3OmniMoeThinker",
        {
            "hidden_size": 32,
            "head_dim": 8,
            "rope_parameters": ROPE,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 12,
        },
        QWEN3_TOWER | {"out_hidden_size": 32},
        AUDIO_TOWER | {"n_window_infer": 200, "output_dim": 32, "downsample_hidden_size": 3},
        {"image_token_id": IMAGE, "audio_token_id": AUDIO},
        (60, 230, 100, 17),
        eighths,
    ),
)
MODELS = ROOTS = tuple(thinker.model for thinker in THINKERS)
DRAWN = {thinker.model: thinker.random_case for thinker in THINKERS}


def goldens() -> Iterator[Case | VisionTaskCase]:
    for thinker in THINKERS:
        yield from thinker.goldens()
