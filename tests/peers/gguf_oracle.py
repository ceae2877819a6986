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
from weft_reference.gguf_converters import converter_of
from weft_reference.gguf_files import GgufCase
from weft_reference.models.gguf import asked, goldens

from llama_cpp import Model, loads

# Keys and values are in half precision there.
TOLERANCE = 3e-3
# Classes with logits of each token, or hidden states.
HEADS = ("CausalLM", "LMHeadModel", "ForConditionalGeneration", "Model")
# What llama.cpp computes otherwise, or does not load, by the golden's folder.
OTHERWISE = {
    "bamba/q8_0": "turns pairs of dimensions that are not next to each other where half of a head turns",
    "gemma3n_text/q8_0": "has embeddings of each layer of 256, and keys and values in twenty layers",
    "gemma3n_text/q4_0": "has embeddings of each layer of 256, and keys and values in twenty layers",
    "gemma4_text/uncapped": "caps logits at 30 where a file has no cap",
    "t5/q8_0": "does not scale hidden states before the head: logits are by the root of `d_model` larger",
    "umt5/q8_0": "does not scale hidden states before the head: logits are by the root of `d_model` larger",
    "arcee/q8_0": "has no bias of the output projection",
    "deepseek_v2/lite": "takes queries without latent vectors in files of 26 or 27 layers alone",
    "exaone4/q8_0": "has windows in files of 64 layers alone",
    "hy_v4/q4_0": "turns neighbouring dimensions, where the reference turns halves",
    "kimi_linear/queries": "takes queries without latent vectors alone",
    "phimoe/q4_0": "weighs the two best experts by one softmax, where the reference masks scores for each",
    "qwen3_next/widths": "has values as wide as keys",
}


def departure(case: GgufCase, library: Path) -> float | None:
    """The largest difference of the logits behind the first text, or of an encoder's hidden states, by the largest of them; none of
    a drafter, which llama.cpp runs beside another model alone and is asked to load here."""
    case.config.architectures = [case.model_class]
    name = converter_of(case.config).name
    vocab_size = getattr(case.config, "text_config", case.config).vocab_size
    metadata = {**case.metadata, "tokenizer.ggml.model": "no_vocab", f"{name}.vocab_size": vocab_size}
    metadata["tokenizer.ggml.token_type_count"] = getattr(case.config, "type_vocab_size", 1)
    inputs = {key: value[:1] for key, value in case.inputs.items()}
    alone = dataclasses.replace(case, inputs=inputs, kind=lambda _name, _shape: "F32", metadata=metadata)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        outputs = alone.write(path)
        if "input_ids" not in inputs:
            loads(path, library)
            return None
        ids = inputs["input_ids"][0].tolist()
        if "logits" not in outputs:
            expected = outputs["last_hidden_state"][0]
            found = Model(path, library, 1, 64, 0).embeddings(ids, expected.shape[-1])
            return float(np.abs(found - expected).max() / np.abs(expected).max())
        expected = outputs["logits"][0, -1]
        model = Model(path, library, 1, 64, len(expected))
        if "decoder_input_ids" in inputs:
            model.encode(ids)
            ids = inputs["decoder_input_ids"][0].tolist()
        found = model.logits(ids)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--model", action="append")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known, failed = [], 0
    for case in (*goldens(), *asked()):
        if not isinstance(case, GgufCase) or not case.model_class.endswith(HEADS):
            continue
        fields = case.config.to_dict()
        if fields in known or (options.model and case.config.model_type not in options.model):
            continue
        known.append(fields)
        name = case.path.removeprefix("gguf/")
        try:
            found = departure(case, options.library)
            said = "loads" if found is None else f"{found:.1e}"
        except ValueError as error:
            found, said = float("inf"), str(error)
        fits = ((found or 0.0) > TOLERANCE) == (name in OTHERWISE)
        failed += not fits
        print(f"{name}: {said}{'' if fits else ' UNEXPECTED'} {OTHERWISE.get(name, '')}".rstrip(), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
