"""Which decoders have a spec, and what each extends: a relative of a known one needs no line in the tables."""

from __future__ import annotations

import re
from pathlib import Path

SPECS = Path(__file__).resolve().parents[3] / "model_specs"
FOLDERS = (SPECS / "text-decoders", SPECS / "mixture-of-experts")
EXTENDS = re.compile(r"^extends:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)


def parents(folders: tuple[Path, ...] = FOLDERS) -> dict[str, str]:
    """What each spec of the folders extends, by the model's name; those that extend nothing are left out."""
    paths = [path for folder in folders for path in sorted(folder.glob("*.yaml"))]
    found = {path.stem: EXTENDS.search(path.read_text(encoding="utf-8")) for path in paths}
    return {model: match[1] for model, match in found.items() if match}


def relatives(known: set[str], parent: dict[str, str]) -> list[str]:
    """The models that are not known themselves and extend a known one, directly or not."""

    def reaches(model: str, seen: frozenset[str] = frozenset()) -> bool:
        above = parent.get(model)
        return above is not None and above not in seen and (above in known or reaches(above, seen | {above}))

    return [model for model in parent if model not in known and reaches(model)]
