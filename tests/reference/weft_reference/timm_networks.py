"""The library timm without torchvision, which it imports for what is not used here: data and augmentation."""

from __future__ import annotations

import enum
import importlib.abc
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

import torch
import transformers
from transformers.utils import import_utils

PACKAGE = "torchvision"


class InterpolationMode(enum.Enum):
    NEAREST, BILINEAR, BICUBIC, BOX, HAMMING, LANCZOS = "nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"


class Empty(types.ModuleType):
    """A module whose names are classes without contents."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return InterpolationMode if name == "InterpolationMode" else type(name, (torch.nn.Module,), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of the package, each of them empty."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == PACKAGE else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def load() -> None:
    """Imports timm, and has `transformers` take it as installed; what looks for torchvision afterwards finds none."""
    if "timm" in sys.modules:
        return
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        import timm  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]
    for module in (import_utils, transformers.utils):
        module.is_timm_available = lambda: True
    import_utils.BACKENDS_MAPPING["timm"] = (lambda: True, import_utils.TIMM_IMPORT_ERROR)
