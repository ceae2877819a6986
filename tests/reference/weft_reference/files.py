"""Golden files in memory, and the one place that compares them with the folder and writes them.

Goldens are made on many machines, whose last bits differ. A file that says the same as the one in the
folder (equal structure, numbers within `SAME`) is left alone, so remaking goldens changes only what changed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

SAME = 2e-5
Files = dict[str, bytes]


def to_json(value: Any, width: int = 120) -> bytes:
    """JSON with short values on one line; float32 numbers are written with the digits float32 needs."""
    return (_layout(value, 0, width) + "\n").encode()


def _layout(value: Any, depth: int, width: int) -> str:
    flat = _flat(value)
    if not isinstance(value, (dict, list, tuple)) or not value or len(flat) + depth <= width:
        return flat
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(str(k), ensure_ascii=False)}: {_layout(v, depth + 1, width)}" for k, v in value.items()]
        return "{\n" + ",\n".join(pad + part for part in parts) + "\n" + " " * depth + "}"
    if all(isinstance(item, (int, float)) for item in value):
        return flat
    return "[\n" + ",\n".join(pad + _layout(v, depth + 1, width) for v in value) + "\n" + " " * depth + "]"


def _flat(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (bool, np.bool_)) or value is None or isinstance(value, str):
        return json.dumps(bool(value) if isinstance(value, np.bool_) else value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k), ensure_ascii=False)}: {_flat(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flat(v) for v in value) + "]"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} cannot be written into a golden: choose inputs that give finite results")
    short = np.float32(number)
    return repr(float(str(short))) if float(short) == number else repr(number)


def to_safetensors(tensors: dict[str, np.ndarray]) -> bytes:
    return save({name: np.asarray(tensors[name], order="C") for name in sorted(tensors)})


def folder_files(folder: Path) -> Files:
    """Every file under a folder, by its relative path with forward slashes."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def difference(name: str, old: bytes, new: bytes) -> str | None:
    """What differs between two versions of a file, or nothing when they say the same."""
    if old == new:
        return None
    try:
        if name.endswith(".safetensors"):
            return _tensors_differ(load(old), load(new))
        if name.endswith(".json"):
            return _json_differs(json.loads(old), json.loads(new), "")
    except Exception as error:  # an unreadable old file differs, whatever the reason
        return f"cannot be compared ({error})"
    return "other bytes"


def _tensors_differ(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> str | None:
    if sorted(old) != sorted(new):
        return f"tensors {sorted(set(old) ^ set(new))} are on one side only"
    for name, want in new.items():
        have = old[name]
        if have.shape != want.shape or have.dtype != want.dtype:
            return f"{name} was {have.dtype}{list(have.shape)}, is {want.dtype}{list(want.shape)}"
        if want.dtype.kind != "f":
            if not np.array_equal(have, want):
                return f"{name} has other values"
        elif want.size:
            error = float(np.abs(have.astype(np.float64) - want).max())
            if not error <= SAME * max(1.0, float(np.abs(want).max())):
                return f"{name} is off by {error:.2e}"
    return None


def _json_differs(old: Any, new: Any, at: str) -> str | None:
    if isinstance(new, float) and isinstance(old, (int, float)) and not isinstance(old, bool):
        return None if abs(old - new) <= SAME * max(1.0, abs(new)) else f"{at or '/'} was {old}, is {new}"
    if type(old) is not type(new):
        return f"{at or '/'} has another type"
    if isinstance(new, dict):
        if list(old) != list(new):
            return f"{at or '/'} has other keys"
        pairs: Iterable[tuple[Any, Any, Any]] = ((key, old[key], new[key]) for key in new)
    elif isinstance(new, list):
        if len(old) != len(new):
            return f"{at or '/'} had {len(old)} items, has {len(new)}"
        pairs = ((index, old[index], new[index]) for index in range(len(new)))
    else:
        return None if old == new else f"{at or '/'} was {old!r}, is {new!r}"
    return next((d for key, a, b in pairs if (d := _json_differs(a, b, f"{at}/{key}"))), None)


@dataclass
class Report:
    """How many files said the same, and what was written (or, checking, would be)."""

    same: int = 0
    changed: list[str] = field(default_factory=list)


def sync(files: Files, out: Path, check: bool, report: Report, whole: Iterable[str] = ()) -> None:
    """Brings `out` to `files`; with `check` only tells. Other files under the folders `whole` are stale."""
    for name in sorted(files):
        target = out / name
        old = target.read_bytes() if target.is_file() else None
        reason = "is missing" if old is None else difference(name, old, files[name])
        if reason is None:
            report.same += 1
            continue
        report.changed.append(f"{name}: {reason}")
        if not check:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(target.name + ".partial")
            partial.write_bytes(files[name])
            partial.replace(target)
    for folder in whole:
        for path in sorted((out / folder).rglob("*"), reverse=True):
            name = path.relative_to(out).as_posix()
            if path.is_file() and name not in files:
                report.changed.append(f"{name}: nothing makes it")
                if not check:
                    path.unlink()
            elif path.is_dir() and not check and not any(path.iterdir()):
                path.rmdir()
