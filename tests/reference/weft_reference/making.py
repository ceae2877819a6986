"""Lists and makes the goldens of a family, in a process of its own."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from weft_reference import environment

if TYPE_CHECKING:
    from weft_reference.files import Files


class Golden(Protocol):
    """What a family lists: `path` under the goldens, a folder or a file, and how to make its files."""

    @property
    def path(self) -> str: ...

    def make(self) -> Files: ...


def families() -> list[str]:
    from weft_reference import models

    return sorted(module.name for module in pkgutil.iter_modules(models.__path__))


def goldens(family: str, model: str | None = None) -> Iterator[Golden]:
    """What a family lists; with `model`, only that model's."""
    for golden in importlib.import_module(f"weft_reference.models.{family}").goldens():
        if model is None or golden.path.split("/")[0] == model:
            yield golden


def find(name: str, known: list[str]) -> tuple[str, str | None] | None:
    """The family of that name, or the one that lists a model of that name in `MODELS`."""
    if name.replace("-", "_") in known:
        return name.replace("-", "_"), None
    for family in known:
        module = importlib.import_module(f"weft_reference.models.{family}")
        if name in getattr(module, "MODELS", ()):
            return family, name
    return None


def roots(family: str, files: Files) -> list[str]:
    """The folders that are a family's own and remade whole: its `ROOTS`, else the first of each path."""
    named = getattr(importlib.import_module(f"weft_reference.models.{family}"), "ROOTS", None)
    return sorted(named or {path.split("/")[0] for path in files if "/" in path})


@dataclass
class Made:
    """What remaking a family came to."""

    line: str
    same: int = 0
    changed: list[str] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)


def remake(family: str, model: str | None, options: argparse.Namespace) -> Made:
    """Makes a family's goldens; runs in a process of its own."""
    environment.settle()
    from weft_reference.cases import Case, deterministic
    from weft_reference.files import Report, sync, to_safetensors

    deterministic()
    files: Files = {}
    made = 0
    for golden in goldens(family, model):
        if options.case and not any(text in golden.path for text in options.case):
            continue
        try:
            files |= golden.make()
            if options.intermediate and isinstance(golden, Case):
                dump = to_safetensors(golden.intermediates())
                sync({f"{golden.path}/intermediates.safetensors": dump}, options.intermediate, False, Report())
        except Exception as error:
            error.add_note(f"while making {golden.path}")
            raise
        made += 1
    report = Report()
    own = [model] if model else roots(family, files)
    sync(files, options.out, options.check, report, whole=() if options.case else own)
    size = sum(map(len, files.values()))
    line = f"{model or family}: {made} goldens, {len(files)} files, {size / 1e6:.2f} MB"
    return Made(line, report.same, report.changed, own)
