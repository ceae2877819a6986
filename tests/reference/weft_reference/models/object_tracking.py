"""Which frames' memory and object pointers a tracked frame attends to, as the reference's session picks them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from transformers import Sam2VideoModel

from weft_reference.models.generation.record import Record

ROOTS = ("object-tracking",)
CASES = 160


def cases() -> Iterator[dict[str, Any]]:
    """Frames with prompts in an order of their own, others tracked, limits of configurations; every other video comes frame by frame."""
    draw = np.random.Generator(np.random.PCG64(7))
    for index in range(CASES):
        count = int(draw.integers(3, 24))
        frame = int(draw.integers(0, count))
        prompted = draw.permutation(count)[: int(draw.integers(1, min(count, 7)))].tolist()
        tracked = sorted(set(draw.permutation(count)[: int(draw.integers(0, count))].tolist()) - set(prompted))
        limits = {
            "num_maskmem": int(draw.integers(1, 8)),
            "max_object_pointers_in_encoder": int(draw.integers(2, 17)),
            "max_cond_frame_num": int(draw.choice([-1, 0, 1, 2, 3, 4])),
        }
        reverse, streaming = bool(draw.integers(0, 2)), index % 2 == 1
        yield {"frame": frame, "frames": None if streaming else count, "conditioning": prompted, "tracked": tracked, "reverse": reverse} | {
            "limits": limits,
            **picked(frame, count, prompted, tracked, limits, reverse=reverse, streaming=streaming),
        }


def picked(
    frame: int, count: int, prompted: list[int], tracked: list[int], limits: dict[str, int], reverse: bool, streaming: bool
) -> dict[str, Any]:
    def outputs(frames: list[int]) -> dict[int, Any]:
        return {frame: {"frame": frame, "object_pointer": SimpleNamespace(to=lambda _, frame=frame: frame)} for frame in frames}

    found = {"cond_frame_outputs": outputs(prompted), "non_cond_frame_outputs": outputs(tracked)}
    session = SimpleNamespace(output_dict_per_obj=[found])
    model = SimpleNamespace(config=SimpleNamespace(**limits), num_maskmem=limits["num_maskmem"], training=False)
    model._select_closest_cond_frames = lambda *given, **named: Sam2VideoModel._select_closest_cond_frames(model, *given, **named)
    memory = Sam2VideoModel._gather_memory_frame_outputs(model, session, 0, frame, reverse)
    offsets, pointers, most = Sam2VideoModel._get_object_pointers(model, session, 0, frame, count, None, reverse, streaming)
    return {
        "memory": [[offset, output["frame"]] for offset, output in memory if output is not None],
        "pointers": [list(pair) for pair in zip(offsets, pointers)],
        "most": most,
    }


def goldens() -> Iterator[Record]:
    yield Record("object-tracking/memory.json", lambda: list(cases()))
