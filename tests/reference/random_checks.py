"""Writes random checkpoints with what the reference makes of them, for `cargo xtask verify`.

    python tests/reference/random_checks.py --out DIR [--model bert] [--count 20] [--seed 1]

Each folder is as `save_pretrained` wrote it, with only `io.safetensors` beside.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from random import Random

from weft_reference.cases import Case, deterministic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="bert", help="a family with random_case()")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    deterministic()
    family = importlib.import_module(f"weft_reference.models.{options.model.replace('-', '_')}")
    for index in range(options.count):
        rng = Random(f"{options.model}.{options.seed}.{index}")
        case: Case = family.random_case(rng, f"{options.model}-{options.seed}-{index:03}")
        for name, data in case.make().items():
            if name.endswith("/case.json"):
                continue
            target = options.out / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        print(f"{options.out / case.path}  {case.model_class}  {list(case.inputs['input_ids'].shape)}", flush=True)


if __name__ == "__main__":
    main()
