"""The peers that `cargo xtask bench` measures against: PyTorch, and its export in ONNX Runtime.

    python tests/reference/bench_peers.py DIR [--threads 2] [--shape 1x128]... [--peer NAME]...
        [--export FILE] [--rounds N]

DIR is a checkpoint that `save_pretrained` wrote. Peers:
  pytorch            `transformers`, eager mode, with the attention it chooses by itself (sdpa)
  pytorch-eager      the same with attn_implementation="eager"
  onnxruntime        torch.onnx.export of the model, batch and sequence dynamic, in ONNX Runtime

Prints one JSON object a line. First one `{"peer", "ready": true, "load_s", ...}` for each peer, then
`{"ready": true}`. Without --rounds it reads commands, so that another process can take turns with it:
  run N                      N rounds of every peer and shape
  run N PEER BATCHxSEQUENCE  N rounds of one
  quit
Each round is timed by itself; a run answers `{"peer", "batch", "sequence", "ms": [...]}` for each peer and shape and
`{"done": true}`. The first run of a peer and shape is preceded by rounds that are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import transformers

from weft_reference.inputs import text_batch

WARM_UP = 3
# Worker threads of the peer that ran before still spin for a while; they must not take this one's cores.
SETTLE_S = 0.3
Inputs = dict[str, np.ndarray]
Peer = Callable[[Inputs], None]


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def pytorch(model: transformers.PreTrainedModel, attention: str) -> Peer:
    def once(inputs: Inputs) -> None:
        if model.config._attn_implementation != attention:
            model.set_attn_implementation(attention)
        model(**{name: torch.from_numpy(value) for name, value in inputs.items()})

    return once


def onnx_runtime(path: Path, threads: int) -> Peer:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def export(model: transformers.PreTrainedModel, path: Path, example: Inputs) -> None:
    """`torch.onnx.export` as its documentation recommends, with names and dynamic dimensions."""
    dynamic = {name: {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")} for name in example}
    path.parent.mkdir(parents=True, exist_ok=True)
    model.set_attn_implementation("sdpa")
    with contextlib.redirect_stdout(sys.stderr):  # standard output is for JSON
        torch.onnx.export(
            model,
            kwargs={name: torch.from_numpy(value) for name, value in example.items()},
            f=str(path),
            dynamo=True,
            dynamic_shapes=dynamic,
            input_names=list(example),
            external_data=True,
            verbose=False,
        )


def load(folder: Path) -> transformers.PreTrainedModel:
    [name] = json.loads((folder / "config.json").read_text())["architectures"]
    return getattr(transformers, name).from_pretrained(folder, dtype=torch.float32).eval()


def make_peers(options: argparse.Namespace, work: Path, example: Inputs) -> dict[str, Peer]:
    peers: dict[str, Peer] = {}
    began = time.perf_counter()
    model = load(options.checkpoint)
    load_s = time.perf_counter() - began
    for name, attention in (("pytorch", "sdpa"), ("pytorch-eager", "eager")):
        if name in options.peer:
            peers[name] = pytorch(model, attention)
            say(peer=name, ready=True, load_s=load_s, version=torch.__version__, attention=attention)
    if "onnxruntime" in options.peer:
        path = options.export or work / "model.onnx"
        began = time.perf_counter()
        if not path.exists():
            export(model, path, example)
        export_s = time.perf_counter() - began
        began = time.perf_counter()
        peers["onnxruntime"] = onnx_runtime(path, options.threads)
        load_s = time.perf_counter() - began
        say(peer="onnxruntime", ready=True, load_s=load_s, export_s=export_s, version=onnxruntime.__version__)
    return peers


def measure(peer: Peer, inputs: Inputs, rounds: int, warm: set[Any], key: Any) -> list[float]:
    if key not in warm:
        warm.add(key)
        time.sleep(SETTLE_S)
        for _ in range(WARM_UP):
            peer(inputs)
    time.sleep(SETTLE_S)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        peer(inputs)
        times.append((time.perf_counter() - began) * 1000)
    return times


def shape(text: str) -> tuple[int, int]:
    batch, sequence = text.split("x")
    return int(batch), int(sequence)


def main() -> None:
    names = ("pytorch", "pytorch-eager", "onnxruntime")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", action="append", type=shape, default=[], help="BATCHxSEQUENCE, repeatable")
    parser.add_argument("--peer", action="append", choices=names, default=[], help="default: all")
    parser.add_argument("--export", type=Path, help="keep the exported model here, and use it when it exists")
    parser.add_argument("--rounds", type=int, help="measure this many rounds and end")
    options = parser.parse_args()
    options.peer = options.peer or list(names)
    options.shape = options.shape or [(1, 128), (8, 128)]
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    vocab_size = json.loads((options.checkpoint / "config.json").read_text())["vocab_size"]
    inputs = {(b, s): text_batch(vocab_size, (s,) * b, "none") for b, s in options.shape}
    warm: set[Any] = set()
    with tempfile.TemporaryDirectory() as work:
        peers = make_peers(options, Path(work), text_batch(vocab_size, (16, 16), "none"))
        say(ready=True)
        commands = [f"run {options.rounds}"] if options.rounds else sys.stdin
        for line in commands:
            try:
                match line.split():
                    case ["run", rounds, name, size]:
                        wanted = [(int(rounds), name, shape(size))]
                    case ["run", rounds]:
                        wanted = [(int(rounds), name, size) for size in options.shape for name in peers]
                    case ["quit"]:
                        break
                    case _:
                        raise ValueError
            except ValueError:
                say(error=f"unknown command {line.strip()!r}; there are `run N`, `run N PEER BATCHxSEQUENCE`, `quit`")
                continue
            for rounds, name, size in wanted:
                if name not in peers or size not in inputs:
                    say(error=f"no peer {name} with shape {size[0]}x{size[1]}")
                    continue
                times = measure(peers[name], inputs[size], rounds, warm, (name, size))
                say(peer=name, batch=size[0], sequence=size[1], ms=times)
            say(done=True)


if __name__ == "__main__":
    main()
