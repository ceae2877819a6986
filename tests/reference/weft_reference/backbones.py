"""Cases of a model's backbone class: the last stage, stages by name, stages by index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case
from weft_reference.inputs import floats


def backbone(
    model: str,
    prefix: str,
    sizes: dict[str, Any],
    size: tuple[int, int],
    named: tuple[str, ...] = ("stem", "stage2"),
    file: bool = True,
    config_class: str | None = None,
) -> Iterator[Case]:
    """`named` are stages in between; images are `size` high and wide; `file`, whether what is saved is read as it was."""

    def case(name: str, notes: str, store: Any = None, **changes: Any) -> Case:
        config = getattr(transformers, config_class or f"{prefix}Config")(**(sizes | changes))
        pixels = {"pixel_values": floats("backbone", (2, getattr(config, "num_channels", 3), *size), -2.0, 2.0)}
        return Case(f"{model}/{name}", f"{prefix}Backbone", config, pixels, notes, store)

    yield case("backbone", "The feature map of the last stage.")
    yield case("backbone-named", "Feature maps of stages by their names.", out_features=list(named))
    if file:
        yield case("backbone-file", "Stages by their indices; as save_pretrained writes it.", stores.whole, out_indices=[1, -1])
    else:
        yield case("backbone-indices", "Stages by their indices.", out_indices=[1, -1])
