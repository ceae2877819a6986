"""A golden's checkpoint with its weights in a file, as pages read them: python checkpoint.py OUT GOLDEN...

A golden's weights are a rule; this writes what the rule gives, in `OUT/MODEL/TASK`, beside the golden's own files.
"""

import json
import shutil
import sys
from pathlib import Path

import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))
from weft_reference.cases import ruled_model  # noqa: E402


def write(golden: Path, out: Path) -> None:
    config = json.loads((golden / "config.json").read_text())
    name = json.loads((golden / "task.json").read_text())["class"]
    kind = getattr(transformers, name)
    model, _ = ruled_model(name, kind.config_class.from_dict(config))
    shutil.copytree(golden, out, dirs_exist_ok=True)
    model.save_pretrained(out / "weights")
    shutil.move(out / "weights" / "model.safetensors", out / "model.safetensors")
    shutil.rmtree(out / "weights")


if __name__ == "__main__":
    out = Path(sys.argv[1])
    for golden in map(Path, sys.argv[2:]):
        write(golden, out / golden.parts[-3] / golden.name)
    places = sorted(file.parent.relative_to(out).as_posix() for file in out.glob("*/*/task.json"))
    (out / "index.json").write_text(json.dumps(places))
