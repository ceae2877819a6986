"""What every decoder that reads images has cases of: a text with images in the places of tokens, one or two a text, padded on
either side; texts alone; weights in a file; and checkpoints drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, texts
from weft_reference.vision_tasks import VisionTaskCase

Changes = dict[str, Any]
WRITER = "ForConditionalGeneration"


@dataclass(frozen=True)
class Images:
    """The inputs of images, and how many tokens each has, in the order of their places in the texts."""

    inputs: Inputs
    features: list[int]


@dataclass(frozen=True)
class Family:
    """`model` is the folder of the goldens; `text`, `vision` and `changes` are a tiny configuration, `image` makes the images of
    texts that have so many each; `alone` says whether the reference takes texts without images; `extras` are cases of its own: notes, and changes of `text`, `vision` and the rest."""

    model: str
    prefix: str
    text: Changes
    vision: Changes
    changes: Changes
    image: Callable[[PreTrainedConfig, list[int], str], Images]
    extras: dict[str, tuple[str, Changes]] = field(default_factory=dict)
    tasks: Callable[[Family], Iterator[VisionTaskCase]] | None = None
    vary: Callable[[Random, PreTrainedConfig], Changes] | None = None
    told: Callable[[Inputs], Inputs] = lambda _: {}
    given: Callable[[Inputs], Inputs] = lambda _: {}
    heads: tuple[str, ...] = ("Model", WRITER)
    without: tuple[str, ...] = ()
    flat: bool = False
    alone: bool = True

    def config(self, text: Changes | None = None, vision: Changes | None = None, **changes: Any) -> PreTrainedConfig:
        return getattr(transformers, f"{self.prefix}Config")(
            text_config=TEXT | self.text | (text or {}),
            vision_config=self.vision | (vision or {}),
            **(self.changes | changes),
        )

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
        """`places` are those of images in each text, counted without the images before them."""
        config = self.config(**changes)
        images = self.image(config, [len(row) for row in places], name)
        inputs = texts(spread(places, images.features), images.features, padding)
        inputs |= images.inputs
        inputs |= self.given(inputs)
        path = path or f"{self.model}/{name}"
        told = self.told(inputs)
        return Case(path, self.prefix + head, config, inputs, notes, store, told=told, without=self.without)

    def goldens(self) -> Iterator[Case | VisionTaskCase]:
        base, writer = self.heads[0], self.heads[-1]
        yield self.case("base", base, "Two texts with an image each.", [[2], [1]])
        yield self.case("next-token", writer, "Two texts with an image each.", [[2], [1]])
        if self.alone:
            yield self.text_alone()
        notes = "Two images in the first text, one in the second, which is padded on the {}."
        yield self.case("two-images", writer, notes.format("left"), [[1, 4], [2]])
        yield self.case("padded-right", writer, notes.format("right"), [[1, 4], [2]], "right")
        yield self.case("file", writer, "model.safetensors as save_pretrained writes it.", [[2], [1]], store=stores.whole)
        if self.flat:
            yield self.flattened()
        for name, (notes, changes) in self.extras.items():
            yield self.case(name, writer, notes, [[1, 3], [2]], **changes)
        if self.tasks:
            yield from self.tasks(self)

    def text_alone(self) -> Case:
        """Texts without images, which some classes of the reference do not take."""
        alone = text_batch(IMAGE, (7, 4), "left", key=self.model)
        del alone["token_type_ids"]
        notes = "Two texts without images, one padded on the left."
        return Case(f"{self.model}/text-alone", self.prefix + self.heads[-1], self.config(), alone, notes)

    def flattened(self) -> Case:
        """The text's fields beside those of the whole, as older files have them."""
        case = self.case("flat", self.heads[-1], "The text's fields stand beside `vision_config`.", [[2], [1]])
        text = case.config.text_config.to_dict()
        own = {name: value for name, value in text.items() if name not in ("model_type", "architectures", "rope_parameters")}
        rope = dict(text["rope_parameters"])
        theta = {"rope_theta": rope.pop("rope_theta"), "rope_scaling": {"type": "mrope", "mrope_section": rope["mrope_section"]}}
        return replace(case, written=own | theta | {"text_config": None})

    def random_case(self, rng: Random, path: str) -> Case:
        """Other widths, layers, heads, grouped heads and batches; two texts or three with images."""
        heads, groups = rng.choice((2, 4)), rng.choice((1, 2))
        layers = rng.randint(1, 3)
        text = {
            "hidden_size": heads * rng.choice((8, 12)),
            "intermediate_size": rng.randint(9, 40),
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": heads // groups,
            "vocab_size": rng.randint(IMAGE + 1, 300),
        }
        if "layer_types" in self.text:
            kinds = sorted(set(self.text["layer_types"]))
            text["layer_types"] = [*(rng.choice(kinds) for _ in range(layers - 1)), "full_attention"]
        towers = rng.choice((1, 2, 4))
        vision = {
            "hidden_size": towers * rng.choice((8, 12)),
            "intermediate_size": rng.randint(9, 40),
            "num_hidden_layers": rng.randint(1, 3),
            "num_attention_heads": towers,
        }
        changes = {"text": text, "vision": vision}
        if self.vary:
            own = self.vary(rng, self.config(**changes))
            changes = {"text": text | own.pop("text", {}), "vision": vision | own.pop("vision", {})} | own
        places = [[1], [0], [2, 3]][: rng.randint(1, 3)]
        store = rng.choice((stores.whole, stores.sharded("20KB")))
        padding = rng.choice(("left", "right"))
        return self.case(path, rng.choice(self.heads), "Drawn at random.", places, padding, store, path, **changes)


"""A small text model: grouped heads, two layers."""
TEXT: Changes = {
    "vocab_size": 99,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
}

"""A small SigLIP over four by four patches."""
SIGLIP: Changes = {
    "model_type": "siglip_vision_model",
    "hidden_size": 12,
    "intermediate_size": 18,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "image_size": 16,
    "patch_size": 4,
    "vision_use_head": False,
}


def spread(places: list[list[int]], features: list[int]) -> list[list[int]]:
    """Places in texts whose images already stand there."""
    counts, spread = iter(features), []
    for row in places:
        before, own = 0, []
        for place in row:
            own.append(place + before)
            before += next(counts)
        spread.append(own)
    return spread


def square(each: Callable[[PreTrainedConfig], int]) -> Callable[[PreTrainedConfig, list[int], str], Images]:
    """Images of the vision model's size, one after the other."""

    def made(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
        vision, images = config.vision_config, sum(counts)
        size = vision.image_size
        sides = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
        pixels = floats(f"pixels.{key}", (images, vision.num_channels, *sides), -2.0, 2.0)
        return Images({"pixel_values": pixels}, [each(config)] * images)

    return made


def patches(config: PreTrainedConfig) -> int:
    vision = config.vision_config
    return (vision.image_size // vision.patch_size) ** 2


def packed(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes as one list of patches."""
    vision = config.vision_config
    merge = vision.spatial_merge_size
    grids = [[1, merge * (1 + index % 3), merge * (2 + index % 2)] for index in range(sum(counts))]
    values = vision.in_channels * getattr(vision, "temporal_patch_size", 1) * vision.patch_size**2
    pixels = floats(f"pixels.{key}", (sum(rows * columns for _, rows, columns in grids), values), -2.0, 2.0)
    features = [rows * columns // merge**2 for _, rows, columns in grids]
    return Images({"pixel_values": pixels, "image_grid_thw": np.array(grids, np.int64)}, features)


def listed(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images as lists of each text, padded by images of zeros; the last one of the first text shows a part of itself alone."""
    vision = config.vision_config
    size, most = vision.image_size, max(counts)
    shape = (len(counts), most, vision.num_channels, size, size)
    pixels = floats(f"pixels.{key}", shape, -2.0, 2.0)
    mask = np.ones((len(counts), most, size, size), np.int64)
    for row, count in enumerate(counts):
        pixels[row, count:] = 0.0
        mask[row, count:] = 0
    shown = (size // 2, size - vision.patch_size - 1)
    mask[0, counts[0] - 1, shown[0] :] = 0
    mask[0, counts[0] - 1, :, shown[1] :] = 0
    each = patches(config) // config.scale_factor**2
    return Images({"pixel_values": pixels, "pixel_attention_mask": mask}, [each] * sum(counts))
