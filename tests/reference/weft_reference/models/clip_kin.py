"""Models of images and texts that differ from CLIP by what reads the texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models import clip_text, clip_vision
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.clip_kin import tasks

# BERT's and RoBERTa's share fields; positions are enough for the labels of the tasks.
READER = {name: value for name, value in clip_text.sizes().items() if not name.endswith(("_dim", "os_token_id"))}
TEXTS: dict[str, dict[str, Any]] = {
    "metaclip_2": clip_text.sizes(bos_token_id=0, eos_token_id=2),
    "chinese_clip": READER | {"type_vocab_size": 2, "pad_token_id": 0},
    "altclip": READER | {"type_vocab_size": 1, "pad_token_id": 1, "project_dim": 14},
}
KIN = {"metaclip_2": "MetaClip2", "chinese_clip": "ChineseCLIP", "altclip": "AltCLIP"}
MODELS = tuple(KIN)
ROOTS = MODELS


def config(model: str, text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> Any:
    return getattr(transformers, f"{KIN[model]}Config")(
        text_config=TEXTS[model] | (text or {}),
        vision_config=clip_vision.sizes(**({"hidden_size": 12, "num_attention_heads": 3} | (vision or {}))),
        **({"projection_dim": 10} | changes),
    )


def texts(model: str, lengths: tuple[int, ...] = (9, 6), padding: Any = "right") -> dict[str, np.ndarray]:
    """Texts as the model's tokenizer begins, ends and pads them."""
    if model == "metaclip_2":
        batch = clip_text.texts(lengths, padding, key=model)
        batch["input_ids"][batch["input_ids"] == clip_text.END] = 2
        return batch
    batch = text_batch(99, lengths, padding, pad=TEXTS[model]["pad_token_id"], key=model)
    if model == "altclip":
        del batch["token_type_ids"]
    return batch


def published(model: transformers.PreTrainedModel, folder: Path) -> None:
    """This release writes `layer` for the layers of both models; published files do so for the text model alone."""
    stores.whole(model, folder)
    path = folder / "model.safetensors"
    of_vision = "vision_model.encoder.layer."
    tensors = {name.replace(of_vision, f"{of_vision[:-1]}s."): tensor for name, tensor in load_file(path).items()}
    save_file(dict(sorted(tensors.items())), path, metadata={"format": "pt"})


def without_padding(store: Store) -> Store:
    """As the store writes it, with a padding token of zeros, which this release makes of any as it loads Chinese CLIP."""

    def written(model: transformers.PreTrainedModel, folder: Path) -> None:
        if isinstance(model, transformers.ChineseCLIPModel):
            model.text_model.embeddings.word_embeddings.weight.data[model.config.text_config.pad_token_id] = 0
        store(model, folder)

    return written


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model in KIN:
        yield from kin(model)
        yield from tasks(model, KIN[model], config)


def kin(model: str) -> Iterator[Case]:
    def case(
        name: str,
        notes: str,
        chosen: Any = None,
        given: dict[str, np.ndarray] | None = None,
        store: Store | None = None,
        head: str = "Model",
    ) -> Case:
        chosen = chosen or config(model)
        inputs = clip_vision.images(chosen.vision_config)
        if head == "Model":
            inputs |= texts(model) if given is None else given
        return Case(f"{model}/{name}", KIN[model] + head, chosen, inputs, notes, store)

    yield case("base", "Two images, two texts, the second padded.")
    yield case("left-padding", "The second text is padded on the left.", given=texts(model, padding="left"))
    ids = {"input_ids": texts(model, (7, 7, 7), "none")["input_ids"]}
    yield case("more-texts", "Two images, three texts, no mask.", given=ids)
    other = {"hidden_act": "relu", "layer_norm_eps": 0.1}
    chosen = config(model, {"hidden_size": 20, **other}, {"hidden_size": 16, "num_attention_heads": 2, **other}, projection_dim=7)
    yield case("other-sizes", "Other functions, epsilons that matter, other widths.", chosen)
    larger = texts(model) | {"pixel_values": floats("larger", (2, 3, 20, 16), -2.0, 2.0)}
    told = {"interpolate_pos_encoding": True}
    notes = "Images larger than the configuration's."
    yield Case(f"{model}/interpolated", f"{KIN[model]}Model", config(model), larger, notes, forward=told)
    small = config(model, {"num_hidden_layers": 1}, {"num_hidden_layers": 1})
    yield case("file", "model.safetensors as save_pretrained writes it.", small, store=without_padding(stores.whole))
    yield case("file-f16", "Weights in half precision.", small, store=without_padding(stores.as_dtype(torch.float16)))
    if model == "altclip":
        yield case("file-published", "Layers of the text model by the name that published files have.", small, store=published)
    if model == "metaclip_2":
        none = texts(model)
        none["input_ids"][1][none["input_ids"][1] == 2] = 5
        yield case("no-end", "A text without an end: its first token stands for it.", given=none)
        yield case("image-classification", "The mean of the patches.", config(model, num_labels=3), head="ForImageClassification")
