"""One file of goldens that is not a case folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft_reference.files import Files, to_json


@dataclass(frozen=True)
class Record:
    """`path` is the file under the goldens; `content` gives what it holds, as JSON or as bytes."""

    path: str
    content: Callable[[], Any]

    def make(self) -> Files:
        content = self.content()
        return {self.path: content if isinstance(content, bytes) else to_json(content)}


def numbers(values: np.ndarray) -> list[Any]:
    """float32 values; what JSON cannot say as text."""

    def one(value: float) -> Any:
        if math.isfinite(value):
            return value
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")

    return [one(float(value)) for value in values.reshape(-1)]
