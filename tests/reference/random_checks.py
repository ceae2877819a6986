"""Writes random checkpoints with what the reference makes of them, for `cargo xtask verify`.

    python tests/reference/random_checks.py --out DIR [--model bert]... [--count 20] [--seed 1]

Each folder is as `save_pretrained` wrote it, with only `io.safetensors` beside.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from weft_reference.cases import deterministic
from weft_reference.drawn import DRAWN, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", action="append", choices=sorted(DRAWN), metavar="MODEL", help="all that can be drawn")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    deterministic()
    for path, draw, rng in drawn(options.model or sorted(DRAWN), options.count, options.seed):
        case = draw(rng, path)
        try:
            files = case.make()
        except Exception as error:
            error.add_note(f"while making {path}: {case.model_class}, {case.config.to_diff_dict()}")
            raise
        for name, data in files.items():
            if name.endswith("/case.json"):
                continue
            target = options.out / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in case.inputs.items())
        print(f"{options.out / path}  {case.model_class}  {shapes}", flush=True)


if __name__ == "__main__":
    main()
