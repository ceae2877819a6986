"""The tasks of ERNIE 4.5 VL: texts and chats with images and videos in them that are continued.

Timestamps are not drawn on frames here (`draw_on_frames`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft_reference.vision_tasks import VisionTaskCase, vision_language
from weft_reference.vision_tasks.llava import TOKEN
from weft_reference.vision_tasks.videos import STATISTICS, VIDEO, OnPillow, shown

if TYPE_CHECKING:
    from weft_reference.models.vision_language.family import Family

AROUND = {
    "video_start_token": "<video_begin>",
    "video_end_token": "<video_end>",
    "image_start_token": "<begin>",
    "image_end_token": "<end>",
}


class Frames(OnPillow):
    """A processor of videos whose frames have patches of their own, an even number of them."""

    min_frames, max_frames = 2, 5

    def size(self, video: np.ndarray) -> tuple[int, int]:
        from transformers.models.ernie4_5_vl_moe.image_processing_pil_ernie4_5_vl_moe import smart_resize

        size, factor = self.settings["size"], self.patch_size * self.merge_size
        return smart_resize(*video.shape[1:3], factor, size["shortest_edge"], size["longest_edge"])

    def patches(self, frames: torch.Tensor) -> tuple[torch.Tensor, int, int, int]:
        if len(frames) % 2:
            frames = torch.cat((frames, frames[-1:]))
        (times, channels, height, width), merge, edge = frames.shape, self.merge_size, self.patch_size
        rows, columns = height // edge, width // edge
        parts = frames.view(times, channels, rows // merge, merge, edge, columns // merge, merge, edge)
        parts = parts.permute(0, 2, 5, 3, 6, 1, 4, 7)
        return parts.reshape(times * rows * columns, channels * edge**2), times, rows, columns

    def written(self) -> dict[str, Any]:
        frames = {"draw_on_frames": False, "min_frames": self.min_frames, "max_frames": self.max_frames}
        return super().written() | frames


def ernie4_5_vl_moe(family: Family) -> Iterator[VisionTaskCase]:
    """Images of any size, between two tokens of their own that the text may have; videos."""
    from transformers import Ernie4_5_VLMoeImageProcessorPil, Ernie4_5_VLMoeProcessor

    made, text = vision_language.added(f"<begin>{TOKEN}<end>", {"image_token": TOKEN, "video_token": VIDEO} | AROUND)
    tokens = {"image_token_id": TOKEN, "video_token_id": VIDEO} | {f"{name}_id": token for name, token in AROUND.items()}
    config = family.config(text=text, **{name: made.convert_tokens_to_ids(token) for name, token in tokens.items()})
    image = Ernie4_5_VLMoeImageProcessorPil(patch_size=4, size={"shortest_edge": 500, "longest_edge": 1500})
    processor = vision_language.still(Ernie4_5_VLMoeProcessor, image, made)
    yield from vision_language.asked(family, config, processor, TOKEN)

    settings = {"patch_size": 4, "image": {}, "do_sample_frames": True, "size": {"shortest_edge": 300, "longest_edge": 600}}
    video = Frames("ernie4_5_vl_moe", settings | STATISTICS)
    yield from shown(family, Ernie4_5_VLMoeProcessor, image, video, AROUND)
