"""A golden's checkpoint with its weights in a file, as pages read them: python checkpoint.py OUT GOLDEN...

Most goldens' weights are a rule; this writes what the rule gives, in `OUT/MODEL/TASK`, beside the golden's own files.
"""

import json
import shutil
import sys
from pathlib import Path

from safetensors.numpy import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))
from weft_reference import weights  # noqa: E402


def write(golden: Path, out: Path) -> None:
    shutil.copytree(golden, out, dirs_exist_ok=True)
    # Some have weights of their own.
    if not (out / "model.safetensors").exists():
        shapes = json.loads((golden / "task.json").read_text())["parameters"]
        tensors = {name: weights.values(name, tuple(shape)) for name, shape in shapes.items()}
        save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    out = Path(sys.argv[1])
    for golden in map(Path, sys.argv[2:]):
        write(golden, out / golden.parts[-3] / golden.name)
    places = sorted(file.parent.relative_to(out).as_posix() for file in out.glob("*/*/task.json"))
    (out / "index.json").write_text(json.dumps(places))
