"""Whether the installed packages are the pinned ones, and the settings that make numbers repeatable."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements.txt"
# What diffusion models and those of open_clip need besides, in a folder of their own on Python's path.
DIFFUSION = REQUIREMENTS.with_name("requirements-diffusion.txt")


def pins(requirements: Path = REQUIREMENTS) -> dict[str, str]:
    """The pinned version of each package."""
    lines = requirements.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("==") for line in lines if line and not line.startswith("#"))
    return {name: pinned for name, _, pinned in pairs if name}


def mismatches(requirements: Path = REQUIREMENTS) -> list[str]:
    """One sentence for each package that is missing or of another version."""
    found = []
    for name, pinned in pins(requirements).items():
        try:
            installed = version(name).split("+")[0]
        except PackageNotFoundError:
            found.append(f"{name} is not installed, {pinned} is pinned")
            continue
        if installed != pinned:
            found.append(f"{name} {installed} is installed, {pinned} is pinned")
    return found


def settle() -> None:
    """Before the libraries are loaded: one thread, no network, no messages."""
    os.environ.update(
        OMP_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        TOKENIZERS_PARALLELISM="false",
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_VERBOSITY="error",
    )
