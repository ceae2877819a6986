"""What a family's goldens depend on: its own sources and those it imports, for leaving out what has not changed."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

from weft_reference import specs

PACKAGE = Path(__file__).resolve().parent
NAME = PACKAGE.name


def fingerprint(family: str, versions: dict[str, str]) -> str:
    """A hash of the sources of `models/<family>`, of all of this package that they import, of its data, and of the
    specs where they read them."""
    digest = hashlib.sha256(repr(sorted(versions.items())).encode())
    data = sorted(path for path in (PACKAGE / "data").rglob("*") if path.is_file())
    sources = imported(files(f"{NAME}.models.{family}"))
    for path in sorted(sources) + data:
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    if Path(specs.__file__).resolve() in sources:
        digest.update(repr(specs.parents()).encode())
    return digest.hexdigest()


def contents(folders: Iterable[Path]) -> str:
    """A hash of every file under some folders; they may be single files too."""
    digest = hashlib.sha256()
    for folder in sorted(folders):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            if path.is_file():
                digest.update(path.relative_to(folder.parent).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def imported(start: set[Path]) -> set[Path]:
    """These files and all that they import from this package, directly or not."""
    found: set[Path] = set()
    waiting = set(start)
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting |= {file for module in modules(path) for file in files(module)} - found
    return found


def modules(path: Path) -> set[str]:
    """The modules that a file names in its imports, wherever they stand in it."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = (PACKAGE.name, *path.relative_to(PACKAGE).parts)[: -node.level]
                base = ".".join((*parents, base)).rstrip(".")
            named |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in named if name == NAME or name.startswith(f"{NAME}.")}


def files(module: str) -> set[Path]:
    """The files of a module; of a package under `models` all of them, since such a family is one thing."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    if place.with_suffix(".py").is_file():
        return {place.with_suffix(".py")}
    if place.is_dir() and place.parent == PACKAGE / "models":
        return set(place.rglob("*.py"))
    return {place / "__init__.py"} if (place / "__init__.py").is_file() else set()
