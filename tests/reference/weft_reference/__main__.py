"""`python -m weft_reference`: makes the goldens, or with --check tells which ones are not as made."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import sys
from pathlib import Path

from weft_reference import environment, sources
from weft_reference.making import families, find, remake


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
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument(
        "--stamps",
        type=Path,
        metavar="FILE",
        help="leave out families whose sources and goldens are as FILE remembers them, and remember the others",
    )
    return parser.parse_args()


class Stamps:
    """Which families are known to be as their sources make them."""

    def __init__(self, options: argparse.Namespace) -> None:
        partly = options.case or options.check or options.intermediate
        self.file: Path | None = None if partly else options.stamps
        self.out: Path = options.out
        self.known: dict[str, list[str]] = {}
        if self.file and self.file.is_file():
            self.known = json.loads(self.file.read_text())

    def has(self, family: str) -> bool:
        named = self.known.get(family)
        return named is not None and self.stamp(family, named[1:]) == named[0]

    def keep(self, family: str, model: str | None, own: list[str]) -> None:
        if self.file and model is None:
            self.known[family] = [self.stamp(family, own), *own]
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.known, indent=1))

    def stamp(self, family: str, own: list[str]) -> str:
        return sources.fingerprint(family, environment.pins() | environment.pins(environment.DIFFUSION)) + sources.contents(self.out / name for name in own)


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
    stamps = Stamps(options)
    waiting = [(family, model) for family, model in chosen if not stamps.has(family)]
    if len(waiting) < len(chosen):
        print(f"{len(chosen) - len(waiting)} families are as they were", file=sys.stderr)

    from weft_reference import vectors
    from weft_reference.files import Report, sync, to_json

    report = Report()
    sync({"weight_rule.json": to_json(vectors.vectors())}, options.out, options.check, report)
    # Spawned, not forked: the libraries' threads do not survive a fork.
    spawn = multiprocessing.get_context("spawn")
    at_once = max(1, min(options.jobs, len(waiting)))
    with concurrent.futures.ProcessPoolExecutor(at_once, mp_context=spawn) as pool:
        futures = {pool.submit(remake, *one, options): one for one in waiting}
        try:
            for future in concurrent.futures.as_completed(futures):
                made = future.result()
                report.same += made.same
                report.changed += made.changed
                stamps.keep(*futures[future], made.roots)
                print(made.line, file=sys.stderr)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for line in sorted(report.changed):
        print(("differs  " if options.check else "written  ") + line)
    print(
        f"{report.same} files as they were, {len(report.changed)} {'differ' if options.check else 'written'}",
        file=sys.stderr,
    )
    return 1 if options.check and report.changed else 0


if __name__ == "__main__":
    sys.exit(main())
