"""LED, LongT5, Pegasus-X and BigBird-Pegasus: texts that are longer than windows and blocks, and no multiple of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import Padding
from weft_reference.models import bart, t5_kin
from weft_reference.models.bart import EOS, read, written
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_to_text_goldens

SIZES = {name: value for name, value in bart.TINY.items() if name != "max_position_embeddings"}
WINDOWS = {"max_encoder_position_embeddings": 48, "max_decoder_position_embeddings": 24, "attention_window": 4}
SPARSE = {"max_position_embeddings": 48, "block_size": 3, "num_random_blocks": 1}
STAGGERED = {"block_size": 4, "num_global_tokens": 3}
LOCAL = {"local_radius": 3, "global_block_size": 4}
WRITER, CLASSES, SPAN = "ForConditionalGeneration", "ForSequenceClassification", "ForQuestionAnswering"
MODELS = ("led", "bigbird_pegasus", "pegasus_x", "longt5")
ROOTS = MODELS


def ended(lengths: tuple[int, ...]) -> Inputs:
    """Texts with one end token each, at different places."""
    inputs = read(lengths=lengths)
    for row, length in enumerate(lengths):
        inputs["input_ids"][row, length - 1] = EOS
    return inputs


def some_global(inputs: Inputs) -> Inputs:
    """Two tokens global, and one of padding, which is none."""
    mask = np.zeros_like(inputs["input_ids"])
    mask[0, [0, 9]] = mask[1, [0, -1]] = 1
    return {**inputs, "global_attention_mask": mask}


class Family:
    """The cases of one model; `tiny` are the fields that all have."""

    def __init__(self, model: str, prefix: str, tiny: dict[str, Any]) -> None:
        self.model, self.prefix, self.tiny = model, prefix, tiny

    def config(self, **changes: Any) -> transformers.PreTrainedConfig:
        return getattr(transformers, f"{self.prefix}Config")(**(self.tiny | changes))

    def case(self, name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        return Case(f"{self.model}/{name}", self.prefix + suffix, self.config(**changes), inputs, notes)

    def tasks(self, **changes: Any) -> Iterator[TaskCase]:
        ids = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
        lengths = {name: 128 for name in self.tiny if name.endswith("position_embeddings")}

        def config(**more: Any) -> transformers.PreTrainedConfig:
            return self.config(**(ids | lengths | changes | more))

        # LongT5's cache has as many layers as its encoder.
        layers = ("num_layers", "num_decoder_layers") if self.model == "longt5" else ("decoder_layers",)
        for case in text_to_text_goldens(self.model, self.prefix + WRITER, config, **dict.fromkeys(layers, 4)):
            if case.task == "summarization":
                # Its texts have any length, whatever that says.
                endless = {"max_position_embeddings": None} if self.model == "pegasus_x" else {}
                yield replace(case, written=endless)


def long(padding: Padding = "right", lengths: tuple[int, ...] = (29, 17)) -> Inputs:
    return read(padding, lengths)


def goldens() -> Iterator[Case | TaskCase]:
    yield from led()
    yield from bigbird_pegasus()
    yield from pegasus_x()
    yield from longt5()


def led() -> Iterator[Case | TaskCase]:
    family = Family("led", "LED", SIZES | WINDOWS)
    both = long() | written()
    yield family.case("base", "Model", "Windows shorter than the text, no token global.", both)
    yield family.case("conditional-generation", WRITER, "Tokens that are global.", some_global(both))
    yield family.case("left-padding", WRITER, "What is read is padded on the left.", long("left") | written())
    padded = some_global(long()) | written((6, 4), "right")
    yield family.case("decoder-padding", WRITER, "What is written is padded too.", padded)
    windows = {"attention_window": [4, 8]}
    yield family.case("window-per-layer", WRITER, "A window for each layer.", some_global(both), **windows)
    yield family.case("short", WRITER, "Shorter than a window.", read(lengths=(3, 2)) | written(), attention_window=8)
    yield family.case("question-answering", SPAN, "The decoder reads the text too.", some_global(long(lengths=(23, 15))))
    config, notes = family.config(), "model.safetensors as save_pretrained writes it."
    yield Case("led/file", "LEDForConditionalGeneration", config, some_global(both), notes, stores.whole)
    yield from family.tasks()


def bigbird_pegasus() -> Iterator[Case | TaskCase]:
    family = Family("bigbird_pegasus", "BigBirdPegasus", SIZES | SPARSE)
    both = long() | written()
    yield family.case("base", "Model", "Sparse: ten blocks, the last not whole; the second text padded.", both)
    yield family.case("conditional-generation", WRITER, "Scores of tokens.", both)
    left = long("left") | written((6, 4), "right")
    yield family.case("left-padding", WRITER, "Padding on the left, and in what is written.", left)
    yield family.case("bias", WRITER, "Projections with biases, unscaled embeddings.", both, use_bias=True, scale_embedding=False)
    yield family.case("two-random-blocks", WRITER, "The first block is seen thrice.", both, num_random_blocks=2, block_size=2)
    short = read(lengths=(21, 9)) | written()
    yield family.case("short", WRITER, "As long as attention is not sparse.", short)
    yield family.case("full", WRITER, "Attention that is not sparse.", both, attention_type="original_full")
    yield family.case("sequence-classification", CLASSES, "The last end token's state.", ended((27, 15)), num_labels=3)
    yield family.case("question-answering", SPAN, "The decoder reads the text too.", long())
    yield from family.tasks()


def pegasus_x() -> Iterator[Case | TaskCase]:
    family = Family("pegasus_x", "PegasusX", SIZES | STAGGERED)
    both = long() | written()
    yield family.case("base", "Model", "Eight blocks, the last not whole; the second text padded.", both)
    yield family.case("conditional-generation", WRITER, "Scores of tokens.", both)
    left = long("left") | written((6, 4), "right")
    yield family.case("left-padding", WRITER, "Padding on the left, and in what is written.", left)
    yield family.case("aligned", WRITER, "No layer's blocks are staggered.", both, stagger_local_blocks=False)
    whole = long(lengths=(24, 16)) | written()
    yield family.case("whole-blocks", WRITER, "Whole blocks; unscaled embeddings.", whole, scale_embedding=False)
    yield family.case("short", WRITER, "Shorter than a block.", read(lengths=(3, 2)) | written(), block_size=10)
    yield from family.tasks()


def longt5() -> Iterator[Case | TaskCase]:
    family = Family("longt5", "LongT5", t5_kin.TINY | LOCAL | {"vocab_size": 43})
    both = long() | written()
    yield family.case("base", "Model", "Local attention over blocks, the last not whole.", both)
    for kind, layer in (("local", "local"), ("transient-global", "global")):
        changes = {"encoder_attention_type": kind}
        yield family.case(f"{layer}", WRITER, f"{kind} attention.", both, **changes)
        left = long("left") | written((6, 4), "right")
        yield family.case(f"{layer}-left-padding", WRITER, "Padding on the left, and in what is written.", left, **changes)
        short = read(lengths=(3, 2)) | written()
        yield family.case(f"{layer}-short", WRITER, "Shorter than a block.", short, **changes)
        whole = long(lengths=(24, 16)) | written()
        yield family.case(f"{layer}-whole-blocks", WRITER, "Whole blocks.", whole, **changes)
    gated = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "encoder_attention_type": "transient-global"}
    yield family.case("gated", WRITER, "As published: gated layers, unscaled states.", both, **gated)
    yield family.case("encoder", "EncoderModel", "The encoder alone.", long(), encoder_attention_type="transient-global")
    yield from family.tasks(encoder_attention_type="transient-global")
