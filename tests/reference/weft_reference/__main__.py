"""`python -m weft_reference`: makes the goldens, or with --check tells which ones are not as made."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="weft_reference", description=__doc__)
    default = Path(__file__).resolve().parents[2] / "goldens"
    parser.add_argument("--model", action="append", default=[], help="a family (repeatable); default: all")
    parser.add_argument("--case", action="append", default=[], help="only goldens whose path contains this text")
    parser.add_argument("--out", type=Path, default=default, help="the goldens folder")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when something differs")
    parser.add_argument("--list", action="store_true", help="print the families and stop")
    parser.add_argument(
        "--intermediate",
        type=Path,
        metavar="DIR",
        help="also write every module's output to DIR/<path>/intermediates.safetensors",
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    known = families()
    if options.list:
        print("\n".join(known))
        return 0
    wrong = environment.mismatches()
    if wrong:
        print("error: goldens are made with pinned packages only, and here\n  " + "\n  ".join(wrong), file=sys.stderr)
        print(f"Install them: {sys.executable} -m pip install -r {environment.REQUIREMENTS}", file=sys.stderr)
        return 3
    environment.settle()

    chosen: list[tuple[str, str | None]] = []
    for name in options.model or known:
        found = find(name, known)
        if found is None:
            print(f"error: no goldens are described for model {name!r}; there are {', '.join(known)}", file=sys.stderr)
            return 2
        chosen.append(found)

    from weft_reference import vectors
    from weft_reference.cases import Case, deterministic
    from weft_reference.files import Report, sync, to_json, to_safetensors

    deterministic()
    report = Report()
    sync({"weight_rule.json": to_json(vectors.vectors())}, options.out, options.check, report)
    for family, model in chosen:
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
        sync(files, options.out, options.check, report, whole=() if options.case else roots(family, files))
        size = sum(map(len, files.values()))
        print(f"{model or family}: {made} goldens, {len(files)} files, {size / 1e6:.2f} MB", file=sys.stderr)
    for line in report.changed:
        print(("differs  " if options.check else "written  ") + line)
    print(
        f"{report.same} files as they were, {len(report.changed)} {'differ' if options.check else 'written'}",
        file=sys.stderr,
    )
    return 1 if options.check and report.changed else 0


if __name__ == "__main__":
    sys.exit(main())
