"""What a model of the family is described by, and the cases that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import transformers

from weft_reference.cases import Case, Store
from weft_reference.inputs import choices, text_batch

TINY = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
HEADS = {
    "base": "Model",
    "masked-lm": "ForMaskedLM",
    "causal-lm": "ForCausalLM",
    "sequence-classification": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "question-answering": "ForQuestionAnswering",
    "multiple-choice": "ForMultipleChoice",
}
NSP = {"next-sentence": "ForNextSentencePrediction"}
NOTES = {
    "base": "Two sequences, the second padded on the left.",
    "causal-lm": "is_decoder: no token sees a later one.",
}
CHANGES = {
    "causal-lm": {"is_decoder": True},
    "sequence-classification": {"num_labels": 3},
    "token-classification": {"num_labels": 3},
}


@dataclass(frozen=True)
class Extra:
    """A case of one model: what `config` and `inputs` change, and why; without `mask` it gives no attention_mask.

    `build` is what the class is made with besides.
    """

    name: str
    head: str
    notes: str
    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    padding: str = "right"
    lengths: tuple[int, ...] = (11, 7)
    store: Store | None = None
    mask: bool = True
    build: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Encoder:
    """`classes` is what its classes start with; `without` and `more` are heads.

    With `types` 0 it takes no token_type_ids, and without `mask` no attention_mask.
    """

    classes: str
    config: Mapping[str, Any] = field(default_factory=dict)
    pad: int = 0
    types: int = 2
    mask: bool = True
    without: tuple[str, ...] = ()
    more: Mapping[str, str] = field(default_factory=dict)
    extras: tuple[Extra, ...] = ()
    tiny: Mapping[str, Any] = field(default_factory=lambda: TINY)

    def text(self, lengths: tuple[int, ...] = (11, 7), padding: Any = "right", key: str = "text") -> dict[str, Any]:
        text = text_batch(99, lengths, padding, self.types or 1, self.pad, key)
        if not self.types:
            del text["token_type_ids"]
        if not self.mask:
            del text["attention_mask"]
        return text

    def case(
        self,
        model: str,
        name: str,
        suffix: str,
        notes: str,
        inputs: Any,
        changes: Mapping[str, Any],
        store: Store | None = None,
        build: Mapping[str, Any] = MappingProxyType({}),
    ) -> Case:
        made = getattr(transformers, f"{self.classes}Config")(**{**self.tiny, **self.config, **changes})
        return Case(f"{model}/{name}", f"{self.classes}{suffix}", made, inputs, notes, store, build=build)

    def goldens(self, model: str) -> Iterator[Case]:
        for name, suffix in {**HEADS, **self.more}.items():
            if name in self.without:
                continue
            inputs = self.text(padding="left" if name == "base" else "right")
            if name == "multiple-choice":
                inputs = choices([self.text(n, key=f"choice.{n}") for n in ((11, 7), (9, 11), (11, 5))])
            notes = NOTES.get(name, "Two sequences, the second padded on the right.")
            yield self.case(model, name, suffix, notes, inputs, CHANGES.get(name, {}))
        for extra in self.extras:
            inputs = {**self.text(extra.lengths, extra.padding, extra.name), **extra.inputs}
            if not extra.mask:
                del inputs["attention_mask"]
            suffix = {**HEADS, **self.more}[extra.head]
            yield self.case(model, extra.name, suffix, extra.notes, inputs, extra.config, extra.store, extra.build)
