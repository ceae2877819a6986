"""Checkpoints at the shapes of published ones, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from published import diffusion, sound, text, vision, vision_language
from published.made import Checkpoint

CHECKPOINTS: Mapping[str, Callable[[], Checkpoint]] = {
    **vision.CHECKPOINTS,
    **sound.CHECKPOINTS,
    **text.CHECKPOINTS,
    **vision_language.CHECKPOINTS,
    **diffusion.CHECKPOINTS,
}
