"""How far the reference departs from its own float32 outputs when it computes in another dtype.

    python -m weft_reference.rounding --dtype bf16 --model zamba2

prints a line of JSON for each golden of a model class: its path, and for each output the largest difference, absolute and as
the tests take it (by the largest value of the output, at least 1). A backend that departs no further than this rounds as the
reference does; one that departs much further computes something in too few bits.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from weft_reference import environment
from weft_reference.cases import Case, deterministic, run
from weft_reference.making import families, find, goldens

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def departures(case: Case, dtype: torch.dtype) -> dict[str, dict[str, float]]:
    """By output, in float32's run and in `dtype`'s of one model: the weights are rounded, and so is every step."""
    with tempfile.TemporaryDirectory() as temporary, case.within():
        model, _ = case.model(Path(temporary))
        given = {**case.inputs, **case.told}
        exact = run(model, given, case.forward, case.without)
        rounded = run(Rounded(model.to(dtype), dtype), given, case.forward, case.without)
    found = {}
    for name, wanted in exact.items():
        if wanted.dtype.kind == "f" and wanted.size and rounded[name].shape == wanted.shape:
            difference = float(np.abs(rounded[name].astype(np.float64) - wanted).max())
            found[name] = {"absolute": difference, "relative": difference / max(1.0, float(np.abs(wanted).max()))}
    return found


class Rounded:
    """A model that is called with float32 inputs and computes in `dtype`; its outputs are float32 again."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype) -> None:
        self.model, self.dtype = model, dtype

    def __call__(self, **inputs: object) -> object:
        return widened(self.model(**{name: self.cast(value) for name, value in inputs.items()}))

    def cast(self, value: object) -> object:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(self.dtype) if floating else value


def widened(value: object) -> object:
    """The same structure, its tensors of few bits as float32."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.is_floating_point() else value
    if isinstance(value, dict):
        return {name: widened(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(widened(item) for item in value) if type(value) in (tuple, list) else tuple(map(widened, value))
    return value


def main() -> int:
    parser = argparse.ArgumentParser(prog="weft_reference.rounding", description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--model", action="append", default=[], help="a model or family (repeatable)")
    parser.add_argument("--case", action="append", default=[], help="only goldens whose path contains this text")
    options = parser.parse_args()
    environment.settle()
    deterministic()
    known = families()
    for name in options.model or known:
        found = find(name, known)
        if found is None:
            print(f"error: no goldens are described for model {name!r}", file=sys.stderr)
            return 2
        for case in goldens(*found):
            if not isinstance(case, Case) or (options.case and not any(text in case.path for text in options.case)):
                continue
            try:
                line = {"case": case.path, "outputs": departures(case, DTYPES[options.dtype])}
            except (RuntimeError, TypeError, ValueError) as error:
                line = {"case": case.path, "error": str(error).splitlines()[0]}
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
