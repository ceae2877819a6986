"""BART and its kin: every head, padding on either side, both orders of norms, every kind of positions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from weft_reference import stores
from weft_reference.bytepair import roberta_tokenizer, vocabulary
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import Padding, text_batch
from weft_reference.tasks import Call, TaskCase
from weft_reference.writing import multilingual_goldens, text_to_text_goldens

PAD, EOS, START = 1, 2, 3
TINY: dict[str, Any] = {
    "vocab_size": 43,
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_layers": 3,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 32,
    "pad_token_id": PAD,
    "bos_token_id": 0,
    "eos_token_id": EOS,
    "decoder_start_token_id": START,
    "forced_eos_token_id": None,
}


class Kin(NamedTuple):
    """`model` is the folder's name, `prefix` what classes begin with; `cases` are changes of the one that writes."""

    model: str
    prefix: str
    heads: tuple[str, ...] = ()
    cases: dict[str, dict[str, Any]] = {}
    writer: str = "ForConditionalGeneration"


CLASSES, SPAN = "ForSequenceClassification", "ForQuestionAnswering"
SCALED = {"scaled": {"scale_embedding": True}}
PLAIN = {"unscaled": {"scale_embedding": False}}
KIN = (
    Kin("bart", "Bart", (CLASSES, SPAN), SCALED | {"relu": {"activation_function": "relu"}}),
    Kin("mbart", "MBart", (CLASSES, SPAN), SCALED),
    Kin("plbart", "PLBart", (CLASSES,), PLAIN),
    Kin("mvp", "Mvp", (CLASSES, SPAN), SCALED),
    Kin("blenderbot", "Blenderbot", (), SCALED),
    Kin("blenderbot-small", "BlenderbotSmall", (), SCALED),
    Kin("pegasus", "Pegasus", (), SCALED),
    Kin("marian", "Marian", (), SCALED, "MTModel"),
    Kin("m2m_100", "M2M100", (), PLAIN),
)
MODELS = tuple(kin.model for kin in KIN)
ROOTS = MODELS


def read(padding: Padding = "right", lengths: tuple[int, ...] = (13, 9)) -> Inputs:
    batch = text_batch(43, lengths, padding, pad=PAD)
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def written(lengths: tuple[int, ...] = (6, 6), padding: Padding = "none") -> Inputs:
    batch = text_batch(43, lengths, padding, pad=PAD, key="decoder")
    inputs = {"decoder_input_ids": batch["input_ids"]}
    if padding != "none":
        inputs["decoder_attention_mask"] = batch["attention_mask"]
    return inputs


def ended() -> Inputs:
    """Texts with one end token each, at different places."""
    inputs = read(lengths=(11, 8))
    ids: np.ndarray = inputs["input_ids"]
    ids[0, 10], ids[1, 7] = EOS, EOS
    return inputs


def without_positions(model: PreTrainedModel, folder: Path) -> None:
    """As published: waves of positions are made when the model is opened."""
    for side in (model.get_encoder(), model.get_decoder()):
        side.embed_positions.weight.data.copy_(side.embed_positions.create_weight())
    stores.whole(model, folder)
    tensors = {name: x for name, x in load_file(folder / "model.safetensors").items() if "embed_positions" not in name}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def goldens() -> Iterator[Case | TaskCase]:
    for kin in KIN:
        yield from cases(kin)
        if kin.model == "bart":
            yield from tasks(kin)
        if kin.model == "marian":
            yield from translations(kin)
        if kin.model == "mbart":
            yield from multilingual_goldens(kin.model, kin.prefix + kin.writer, many_languages, decoder_layers=4)


def translations(kin: Kin) -> Iterator[TaskCase]:
    """What a model that translates alone is for; an ending of its own beside the pipeline's."""

    def config(**changes: Any) -> transformers.MarianConfig:
        sizes = {"max_position_embeddings": 128, "decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
        return transformers.MarianConfig(**(TINY | sizes | changes))

    for case in text_to_text_goldens(kin.model, kin.prefix + kin.writer, config, decoder_layers=4):
        if case.task == "translation":
            yield case


def many_languages(**changes: Any) -> transformers.MBartConfig:
    return transformers.MBartConfig(**(TINY | {"max_position_embeddings": 128, "decoder_start_token_id": EOS} | changes))


def cases(kin: Kin) -> Iterator[Case]:
    config_class = getattr(transformers, f"{kin.prefix}Config")

    def case(
        name: str, suffix: str, notes: str, inputs: Inputs, store: Store | None = None, **changes: Any
    ) -> Case:
        config = config_class(**(TINY | changes))
        waves = "embed_positions.weight" if store is without_positions else None
        return Case(f"{kin.model}/{name}", kin.prefix + suffix, config, inputs, notes, store, computed=waves)

    both = read() | written()
    yield case("base", "Model", "Two texts, the second padded on the right.", both)
    yield case("conditional-generation", kin.writer, "Scores of tokens.", both)
    yield case("left-padding", kin.writer, "What is read is padded on the left.", read("left") | written())
    padded = read() | written((6, 4), "right")
    yield case("decoder-padding", kin.writer, "What is written is padded too.", padded)
    yield case("file", kin.writer, "model.safetensors as save_pretrained writes it.", both, stores.whole)
    for name, changes in kin.cases.items():
        yield case(name, kin.writer, f"{changes}", both, **changes)
    if CLASSES in kin.heads:
        yield case("sequence-classification", CLASSES, "The last end token's state.", ended(), num_labels=3)
    if SPAN in kin.heads:
        yield case("question-answering", SPAN, "The decoder reads the text too.", read())
    if kin.model in ("pegasus", "marian"):
        notes = "Without positions, which are waves."
        yield case("file-without-positions", kin.writer, notes, both, without_positions)


def tasks(kin: Kin) -> Iterator[TaskCase]:
    config_class = getattr(transformers, f"{kin.prefix}Config")

    def config(**changes: Any) -> transformers.PreTrainedConfig:
        sizes = {"max_position_embeddings": 128, "decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
        return config_class(**(TINY | sizes | changes))

    yield from text_to_text_goldens(kin.model, kin.prefix + kin.writer, config, decoder_layers=4)
    # The tokenizer is RoBERTa's.
    sizes = {"vocab_size": len(vocabulary()), "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2}
    names = ["contradiction", "neutral", "entailment"]
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}
    text, other = "My phone fell into the river on Sunday.", "The museum shows maps of the old town."
    candidates = {"candidate_labels": ["music and film", "a letter", "cats, dogs and birds"]}
    pair = {"text": text, "text_pair": other}
    for task, calls in (
        ("text-classification", (Call(text), Call([text, other], {"top_k": None}), Call(pair))),
        (
            "zero-shot-classification",
            (
                Call(text, candidates),
                Call([other, text], candidates | {"hypothesis_template": "{} is what this tells of!"}),
                Call(other, candidates | {"multi_label": True}),
            ),
        ),
    ):
        yield TaskCase(
            f"{kin.model}/tasks/{task}",
            task,
            kin.prefix + CLASSES,
            config(**sizes, **labels),
            roberta_tokenizer(128),
            calls,
            "The state of a text's last end token.",
        )
