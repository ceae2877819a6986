"""What every decoder that reads recordings has cases of: a text with recordings in the places of tokens, one or two a
text, padded on either side; texts alone; weights in a file; and checkpoints drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE as AUDIO
from weft_reference.models.llava import texts
from weft_reference.models.vision_language.family import TEXT, Changes, spread

WRITER = "ForConditionalGeneration"


@dataclass(frozen=True)
class Recordings:
    """The inputs of recordings, and how many tokens each has, in the order of their places in the texts."""

    inputs: Inputs
    features: list[int]


@dataclass(frozen=True)
class AudioFamily:
    """`model` is the folder of the goldens; `text`, `audio` and `changes` are a tiny configuration, of which `audio` is
    under the name `key`; `hear` makes so many recordings; `vary` draws others, of what has a `text_config`; `extras`
    are cases of its own: notes, and changes of `text`, `audio` and the rest."""

    model: str
    prefix: str
    text: Changes
    audio: Changes
    changes: Changes
    hear: Callable[[PreTrainedConfig, int, str], Recordings]
    extras: dict[str, tuple[str, Changes]] = field(default_factory=dict)
    vary: Callable[[Random, Any], Changes] | None = None
    heads: tuple[str, ...] = ("Model", WRITER)
    without: tuple[str, ...] = ()
    key: str = "audio_config"
    told: Inputs = field(default_factory=dict)

    def config(self, text: Changes | None = None, audio: Changes | None = None, **changes: Any) -> PreTrainedConfig:
        parts = {"text_config": TEXT | self.text | (text or {}), self.key: self.audio | (audio or {})}
        return getattr(transformers, f"{self.prefix}Config")(**parts, **(self.changes | changes))

    def case(
        self,
        name: str,
        head: str,
        notes: str,
        places: list[list[int]],
        padding: str = "left",
        store: Any = None,
        path: str | None = None,
        **changes: Any,
    ) -> Case:
        """`places` are those of recordings in each text, counted without the recordings before them."""
        config = self.config(**changes)
        heard = self.hear(config, sum(len(row) for row in places), name)
        inputs = texts(spread(places, heard.features), heard.features, padding)
        path = path or f"{self.model}/{name}"
        return Case(
            path, self.prefix + head, config, inputs | heard.inputs, notes, store, told=self.told, without=self.without
        )

    def goldens(self) -> Iterator[Case]:
        base, writer = self.heads[0], self.heads[-1]
        yield self.case("base", base, "Two texts with a recording each.", [[2], [1]])
        yield self.case("next-token", writer, "Two texts with a recording each.", [[2], [1]])
        alone = text_batch(AUDIO, (7, 4), "left", key=self.model)
        del alone["token_type_ids"]
        notes = "Two texts without recordings, one padded on the left."
        yield Case(f"{self.model}/text-alone", self.prefix + writer, self.config(), alone, notes, without=self.without)
        notes = "Two recordings in the first text, one in the second, which is padded on the {}."
        yield self.case("two-recordings", writer, notes.format("left"), [[1, 4], [2]])
        yield self.case("padded-right", writer, notes.format("right"), [[1, 4], [2]], "right")
        yield self.case(
            "file", writer, "model.safetensors as save_pretrained writes it.", [[2], [1]], store=stores.whole
        )
        for name, (notes, changes) in self.extras.items():
            yield self.case(name, writer, notes, [[1, 3], [2]], **changes)

    def random_case(self, rng: Random, path: str) -> Case:
        """Other widths, layers, heads, grouped heads and batches; one to three texts with recordings."""
        heads, groups = rng.choice((2, 4)), rng.choice((1, 2))
        text = {
            "hidden_size": heads * rng.choice((8, 12)),
            "intermediate_size": rng.randint(9, 40),
            "num_hidden_layers": rng.randint(1, 3),
            "num_attention_heads": heads,
            "num_key_value_heads": heads // groups,
            "vocab_size": rng.randint(AUDIO + 1, 300),
        }
        changes: Changes = {"text": text, "audio": {}}
        if self.vary:
            own = self.vary(rng, SimpleNamespace(text_config=SimpleNamespace(**(TEXT | self.text | text))))
            changes = {"text": text | own.pop("text", {}), "audio": own.pop("audio", {})} | own
        places = [[1], [0], [2, 3]][: rng.randint(1, 3)]
        store = rng.choice((stores.whole, stores.sharded("20KB")))
        padding = rng.choice(("left", "right"))
        return self.case(path, rng.choice(self.heads), "Drawn at random.", places, padding, store, path, **changes)


def frame_mask(frames: int, seen: list[int]) -> np.ndarray:
    return (np.arange(frames)[None] < np.array(seen)[:, None]).astype(np.int64)


def spectra(
    length: Callable[[int], int], frames: Callable[[PreTrainedConfig], int], name: str | None = "input_features_mask"
) -> Callable[[PreTrainedConfig, int, str], Recordings]:
    """Spectrograms `[recordings, mels, frames]`, every second shorter where a mask has a name; `length` of so many
    frames is the number of tokens."""

    def made(config: PreTrainedConfig, count: int, key: str) -> Recordings:
        whole = frames(config)
        seen = [whole if index % 2 == 0 or not name else whole - 3 - 2 * index for index in range(count)]
        features = floats(f"features.{key}", (count, config.audio_config.num_mel_bins, whole), -1.5, 1.5)
        inputs: dict[str, np.ndarray] = {"input_features": features}
        if name:
            inputs[name] = frame_mask(whole, seen)
        return Recordings(inputs, [length(one) for one in seen])

    return made
