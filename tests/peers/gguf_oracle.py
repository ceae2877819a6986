"""Whether llama.cpp makes of GGUF files what the reference makes of the weights in them.

    python tests/peers/gguf_oracle.py --library libllama.so [--model MODEL_TYPE]...

The files of the goldens under `tests/goldens/gguf` are written by `weft_reference.gguf_converters`, which says what llama.cpp's
converter does. llama.cpp itself is asked here whether that is so: of each golden's model it reads a file in single
precision, and its logits behind a text are held against those of `transformers`. Prints a line a model and ends with 1
where one departs further than it is known to.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from weft_reference.gguf_converters import CONVERTERS
from weft_reference.gguf_files import GgufCase
from weft_reference.models.gguf import goldens

from llama_cpp import Model

# Keys and values are in half precision there.
TOLERANCE = 3e-3
# What llama.cpp computes otherwise, or does not load, by the golden's folder.
OTHERWISE = {
    "arcee/q8_0": "has no bias of the output projection",
    "deepseek_v2/lite": "takes queries without latent vectors in files of 26 or 27 layers alone",
    "exaone4/q8_0": "has windows in files of 64 layers alone",
    "phimoe/q4_0": "weighs the two best experts by one softmax, where the reference masks scores for each",
    "qwen3_next/widths": "has values as wide as keys",
}


def departure(case: GgufCase, library: Path) -> float:
    """The largest difference of the logits behind the first text, by the largest of them."""
    name = CONVERTERS[case.config.model_type].name
    metadata = {"tokenizer.ggml.model": "no_vocab", f"{name}.vocab_size": case.config.vocab_size}
    inputs = {key: value[:1] for key, value in case.inputs.items()}
    alone = dataclasses.replace(case, inputs=inputs, kind=lambda _name, _shape: "F32", metadata=metadata)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        expected = alone.write(path)["logits"][0, -1]
        model = Model(path, library, 1, 64, len(expected))
        found = model.logits(inputs["input_ids"][0].tolist())
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--model", action="append")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known, failed = [], 0
    for case in goldens():
        if not isinstance(case, GgufCase) or not case.model_class.endswith(("CausalLM", "LMHeadModel")):
            continue
        fields = case.config.to_dict()
        if fields in known or (options.model and case.config.model_type not in options.model):
            continue
        known.append(fields)
        name = case.path.removeprefix("gguf/")
        try:
            found = departure(case, options.library)
            said = f"{found:.1e}"
        except ValueError as error:
            found, said = float("inf"), str(error)
        fits = (found > TOLERANCE) == (name in OTHERWISE)
        failed += not fits
        print(f"{name}: {said}{'' if fits else ' UNEXPECTED'} {OTHERWISE.get(name, '')}".rstrip(), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
