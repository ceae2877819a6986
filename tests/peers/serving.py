"""What the peers have in common: they say that they are ready, then run when they are told to.

Standard output is JSON, one object a line: first `{"ready": true, "peer", "version", ...}`, then for each `run N` on
standard input `{"ms": {MEASURE: [...]}}`, a number for each of N rounds. The measures are `run`, or of a decoder
`prefill` and `token`, the mean of its tokens.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Round = Callable[[], dict[str, float]]


def arguments(what: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--generate", type=int, default=0, help="tokens; without it, one forward pass")
    return parser


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def serve(once: Round) -> None:
    for line in sys.stdin:
        match line.split():
            case ["run", rounds]:
                found: dict[str, list[float]] = {}
                for _ in range(int(rounds)):
                    for measure, ms in once().items():
                        found.setdefault(measure, []).append(ms)
                say(ms=found)
            case ["quit"]:
                break
            case _:
                say(error=f"unknown command {line.strip()!r}; there are `run N`, `quit`")


def steps(prefill: Callable[[], int], step: Callable[[int], int], count: int) -> dict[str, float]:
    """A prompt, then tokens one by one, each the likeliest after the one before."""
    began = time.perf_counter()
    token = prefill()
    first = time.perf_counter()
    for _ in range(count):
        token = step(token)
    end = time.perf_counter()
    return {"prefill": (first - began) * 1e3, "token": (end - first) * 1e3 / count}
