"""Audio files and feature extractors: see `weft_reference.processors.audio`."""

from weft_reference.processors.audio import FOLDER, goldens

ROOTS = (FOLDER,)

__all__ = ["ROOTS", "goldens"]
