"""Decoders that read images of any size on canvases of positions, with markers around images, slices and rows: MiniCPM-V 4.7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import integers
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family
from weft_reference.models.vision_language.nested import nested, pixels_of, tower

START, END, SLICE, SLICE_END, NEWLINE = range(IMAGE + 1, IMAGE + 6)
MARKERS = {
    "image_start_id": START,
    "image_end_id": END,
    "slice_start_id": SLICE,
    "slice_end_id": SLICE_END,
    "newline_id": NEWLINE,
}


def told(inputs: Inputs) -> Inputs:
    """Which tokens are those of images; Weft finds it by their id."""
    return {"mm_token_type_ids": np.asarray(inputs["input_ids"] == IMAGE, np.int64)} if "target_sizes" in inputs else {}


def marked(inputs: Inputs) -> Inputs:
    """Markers before and behind each image."""
    ids = np.array(inputs["input_ids"])
    for row in ids:
        found = row == IMAGE
        row[:-1][found[1:] & ~found[:-1]] = START
        row[1:][found[:-1] & ~found[1:]] = END
    return {"input_ids": ids}


def sliced(family: Family) -> Iterator[Case]:
    """Slices below thumbnails, in rows and not; images side by side; a marker at the end of a text."""
    for name, notes, mode in (
        ("slices", "Four slices of an image in two rows, images side by side, and three slices in one.", "16x"),
        ("slices-other-mode", "The same with the other number of patches to a feature.", "4x"),
    ):
        base = family.case(name, "ForConditionalGeneration", notes, [[2], [1]], downsample_mode=mode)
        edge = 2 if mode == "4x" else 4
        text = integers(f"canvas.{name}", (40,), 5, IMAGE).tolist()
        rows = [
            [*text[:3], *image(2, 3), *grid([[(2, 2), (2, 2)], [(2, 2), (2, 2)]]), *text[3:5], *image(1, 2), *text[5:7]],
            [*text[7:9], *image(2, 1), NEWLINE, *image(1, 1), *text[9:12], *image(3, 1), *grid([[(1, 2), (1, 2), (1, 3)]]), *text[12:15]],
        ]
        made = inputs(base.config, rows, edge, name)
        yield replace(base, inputs=made, told=told(made))


def image(rows: int, columns: int) -> list[int | tuple[int, int]]:
    return [START, (rows, columns), END]


def grid(rows: list[list[tuple[int, int]]]) -> list[int | tuple[int, int]]:
    """Slices between their markers, row after row."""
    made: list[int | tuple[int, int]] = []
    for row in rows:
        made += [NEWLINE] if made else []
        for size in row:
            made += [SLICE, size, SLICE_END]
    return made


def inputs(config: PreTrainedConfig, texts: list[list[int | tuple[int, int]]], edge: int, key: str) -> Inputs:
    """Texts in which pairs are the rows and columns of an image's features; the shorter ones padded on the left."""
    sizes = [[edge * length for length in part] for text in texts for part in text if isinstance(part, tuple)]
    spelt = [[id for part in text for id in ([IMAGE] * (part[0] * part[1]) if isinstance(part, tuple) else [part])] for text in texts]
    longest = max(map(len, spelt))
    ids = np.array([[0] * (longest - len(text)) + text for text in spelt], np.int64)
    mask = np.array([[0] * (longest - len(text)) + [1] * len(text) for text in spelt], np.int64)
    return {"input_ids": ids, "attention_mask": mask, **pixels_of(config, sizes, key)}


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """A vocabulary that has the markers."""
    own = tower(rng, config)
    return own | {"text": own["text"] | {"vocab_size": rng.randint(NEWLINE + 1, 300)}}


def on_canvas() -> Family:
    made = nested("minicpmv4_7", "MiniCPMV4_7", "4x")
    return replace(made, changes=made.changes | MARKERS, given=marked, told=told, tasks=sliced, vary=vary)


CANVAS = (on_canvas(),)
