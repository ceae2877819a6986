"""Picture files and image processors: see `weft_reference.processors.image`."""

from weft_reference.processors.image import FOLDER, goldens

ROOTS = (FOLDER,)

__all__ = ["ROOTS", "goldens"]
