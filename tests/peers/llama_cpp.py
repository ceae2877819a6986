"""llama.cpp through its C interface.

    python tests/peers/llama_cpp.py DIR --library libllama.so --generate N [--threads 2] [--file model-bf16.gguf]

DIR holds `model.gguf`, which is float32, and `inputs.safetensors`, as `checkpoints.py` writes them. Serves as `serving.py` says.
With `--quantize` it makes FILE (`model-q4_0.gguf`, `-q4_k_m`, `-q8_0`) of `model.gguf` instead.

Parameters are passed by value in structures that grow from release to release. Only their defaults are used, in
memory that is larger than any of them; what is set is the first field, `n_ctx`, and threads by a function of their own.
"""

from __future__ import annotations

import ctypes
import json
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from serving import arguments, say, serve, steps


class Parameters(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint32), ("rest", ctypes.c_uint32 * 255)]


class Quantizing(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int32), ("type", ctypes.c_int32), ("rest", ctypes.c_uint32 * 254)]


# `llama_ftype` by the name of the file.
TYPES = {"q4_0": 2, "q8_0": 7, "q4_k_m": 15}


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.c_void_p),
        ("n_seq_id", ctypes.c_void_p),
        ("seq_id", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
    ]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


@LOG
def silent(_level: int, _text: bytes, _data: int) -> None:
    """llama.cpp says a lot."""


def declare(library: ctypes.CDLL) -> None:
    pointer, integer = ctypes.c_void_p, ctypes.c_int32
    declared = {
        "llama_log_set": (None, [LOG, pointer]),
        "llama_model_default_params": (Parameters, []),
        "llama_context_default_params": (Parameters, []),
        "llama_model_load_from_file": (pointer, [ctypes.c_char_p, Parameters]),
        "llama_init_from_model": (pointer, [pointer, Parameters]),
        "llama_set_n_threads": (None, [pointer, integer, integer]),
        "llama_get_memory": (pointer, [pointer]),
        "llama_memory_clear": (None, [pointer, ctypes.c_bool]),
        "llama_batch_get_one": (Batch, [ctypes.POINTER(integer), integer]),
        "llama_decode": (integer, [pointer, Batch]),
        "llama_encode": (integer, [pointer, Batch]),
        "llama_set_embeddings": (None, [pointer, ctypes.c_bool]),
        "llama_get_embeddings_ith": (ctypes.POINTER(ctypes.c_float), [pointer, integer]),
        "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [pointer, integer]),
        "llama_print_system_info": (ctypes.c_char_p, []),
        "llama_model_quantize_default_params": (Quantizing, []),
        "llama_model_quantize": (ctypes.c_uint32, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Quantizing)]),
    }
    for name, (result, taken) in declared.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, taken


def loaded(library: Path) -> ctypes.CDLL:
    [ggml] = library.parent.glob("libggml.*so*")
    base = ctypes.CDLL(str(ggml), mode=ctypes.RTLD_GLOBAL)
    base.ggml_backend_load_all_from_path(str(library.parent).encode())
    llama = ctypes.CDLL(str(library))
    declare(llama)
    llama.llama_log_set(silent, None)
    llama.llama_backend_init()
    return llama


def quantize(llama: ctypes.CDLL, checkpoint: Path, file: str, threads: int) -> None:
    """A file that is half-written never has its name."""
    parameters = llama.llama_model_quantize_default_params()
    parameters.threads, parameters.type = threads, TYPES[Path(file).stem.removeprefix("model-")]
    partial = checkpoint / f"{file}.partial"
    source = checkpoint / "model.gguf"
    if llama.llama_model_quantize(str(source).encode(), str(partial).encode(), ctypes.byref(parameters)):
        raise ValueError(f"llama.cpp does not quantize {source}")
    partial.rename(checkpoint / file)


def loads(path: Path, library: Path) -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The library with a model of a file, whose tensors have the names and shapes that it asks for."""
    llama = loaded(library)
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not model:
        raise ValueError(f"llama.cpp does not load {path}")
    return llama, model


class Model:
    def __init__(self, path: Path, library: Path, threads: int, context: int, vocab_size: int) -> None:
        self.llama, model = loads(path, library)
        parameters = self.llama.llama_context_default_params()
        parameters.first = context
        self.context = self.llama.llama_init_from_model(model, parameters)
        self.llama.llama_set_n_threads(self.context, threads, threads)
        self.vocab_size = vocab_size

    def restart(self) -> None:
        self.llama.llama_memory_clear(self.llama.llama_get_memory(self.context), True)

    def encode(self, ids: list[int]) -> None:
        """Gives an encoder the text that its decoder attends to."""
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        if self.llama.llama_encode(self.context, self.llama.llama_batch_get_one(tokens, len(ids))):
            raise ValueError("llama_encode failed")

    def embeddings(self, ids: list[int], width: int) -> np.ndarray:
        """An encoder's hidden states of each token."""
        self.llama.llama_set_embeddings(self.context, True)
        self.encode(ids)
        rows = [self.llama.llama_get_embeddings_ith(self.context, index) for index in range(len(ids))]
        return np.stack([np.ctypeslib.as_array(row, (width,)).copy() for row in rows])

    def run(self, ids: list[int]) -> int:
        return int(self.logits(ids).argmax())

    def logits(self, ids: list[int]) -> np.ndarray:
        """Those behind the last token."""
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        if self.llama.llama_decode(self.context, self.llama.llama_batch_get_one(tokens, len(ids))):
            raise ValueError("llama_decode failed")
        logits = self.llama.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(logits, (self.vocab_size,)).copy()


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--file", default="model.gguf")
    parser.add_argument("--quantize", action="store_true", help="make the file of model.gguf, and end")
    options = parser.parse_args()
    if options.quantize:
        quantize(loaded(options.library), options.checkpoint, options.file, options.threads)
        return
    prompt = load_file(options.checkpoint / "inputs.safetensors")["in.input_ids"][0].tolist()
    began = time.perf_counter()
    context = len(prompt) + options.generate + 8
    vocab_size = json.loads((options.checkpoint / "config.json").read_text())["vocab_size"]
    model = Model(options.checkpoint / options.file, options.library, options.threads, context, vocab_size)
    load_ms = (time.perf_counter() - began) * 1e3
    system = model.llama.llama_print_system_info().decode()

    def once() -> dict[str, float]:
        model.restart()
        return steps(lambda: model.run(prompt), lambda token: model.run([token]), options.generate)

    version = options.library.name.removeprefix("libllama.").removesuffix(".so")
    say(ready=True, peer="llama.cpp", version=version, system=system, load_ms=load_ms)
    serve(once)


if __name__ == "__main__":
    main()
