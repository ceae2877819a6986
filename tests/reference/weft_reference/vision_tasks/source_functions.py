"""Functions of image processors whose files cannot be imported without `torchvision`."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import transformers


@cache
def functions(model: str, **names: Any) -> dict[str, Any]:
    """The functions of a model's file, beside `names`, which is what they use of other modules."""
    path = Path(transformers.__file__).parent / "models" / model / f"image_processing_{model}.py"
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    exec(compile(tree, model, "exec"), names)  # noqa: S102
    return names
