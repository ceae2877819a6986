"""Writes a checkpoint of any class and shape with random weights, and optionally what the reference makes of it.

    python tests/reference/make_checkpoint.py --out DIR --model-class BertModel \
        --config '{"num_hidden_layers": 4}' --seed 7 --batch 2 --sequence 16
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import transformers

from weft_reference.cases import deterministic, ruled_model, run
from weft_reference.files import to_safetensors
from weft_reference.inputs import text_batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model-class", default="BertModel")
    parser.add_argument("--config", type=json.loads, default={}, help="changes to the class' default config, as JSON")
    parser.add_argument("--seed", type=int, default=0, help="salt of the weight rule")
    parser.add_argument("--max-shard-size", default="5GB")
    parser.add_argument("--batch", type=int, default=0, help="also write io.safetensors with this many texts")
    parser.add_argument("--sequence", type=int, default=16)
    options = parser.parse_args()
    deterministic()
    config = getattr(transformers, options.model_class).config_class(**options.config)
    model, _ = ruled_model(options.model_class, config, salt=options.seed)
    model.save_pretrained(options.out, max_shard_size=options.max_shard_size)
    if options.batch:
        lengths = tuple(max(1, options.sequence - index) for index in range(options.batch))
        inputs = text_batch(config.vocab_size, lengths)
        tensors = {f"in.{name}": value for name, value in inputs.items()}
        tensors |= {f"out.{name}": value for name, value in run(model, inputs, {}).items()}
        (options.out / "io.safetensors").write_bytes(to_safetensors(tensors))
    print(options.out)


if __name__ == "__main__":
    main()
