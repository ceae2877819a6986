"""Grounding DINO and MM Grounding DINO: texts of several phrases, padding of both kinds, learned and chosen object queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers
from transformers import BertConfig, GroundingDinoImageProcessorPil, PreTrainedConfig, PreTrainedTokenizerBase

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.inputs import integers
from weft_reference.models.detr import images
from weft_reference.models.mask2former import resnet, swin
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.objects import careful
from weft_reference.wordpiece import vocabulary

MODELS = ("grounding-dino", "mm-grounding-dino")
OBJECTS = "ForObjectDetection"
# Of BERT's vocabulary, of which the model knows these by their ids: those that end phrases, and padding.
CLS, SEP, STOP, QUESTION, WORDS = 101, 102, 1012, 1029, 1030
# Object queries are chosen among positions, not all of which may be.
TINY = {
    "num_queries": 4,
    "d_model": 32,
    "encoder_layers": 2,
    "encoder_ffn_dim": 24,
    "encoder_attention_heads": 4,
    "decoder_layers": 2,
    "decoder_ffn_dim": 20,
    "decoder_attention_heads": 2,
    "encoder_n_points": 2,
    "decoder_n_points": 3,
    "max_text_len": 14,
}
TEXT = {"vocab_size": WORDS, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 16}
# Boxes of padding are infinite in the encoder's logits; the ids are no output of a graph. What is behind a text is −∞, so that logits are compared of texts as long as may be.
# Masks of phrases are truth values, to which BERT's eager attention adds scores.
ATTENTION = {"": "eager", "text_config": "sdpa"}
OTHER = {"without": ("enc_outputs_coord_logits", "input_ids"), "infinite": ("logits", "enc_outputs_class", "encoder_logits"), "attention": ATTENTION}


def config(prefix: str, backbone: PreTrainedConfig | None = None, text: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
    backbone = backbone or swin(out_features=["stage2", "stage3", "stage4"])
    made = TINY | {"backbone_config": backbone, "text_config": BertConfig(**(TEXT | (text or {})))} | changes
    return getattr(transformers, f"{prefix}Config")(**made)


def texts(*phrases: tuple[int, ...], ends: int = STOP) -> Inputs:
    """Texts of phrases with as many words each, one a row, padded to the longest."""
    rows = []
    for row, counts in enumerate(phrases):
        words = integers(f"words{row}", (sum(counts),), 1, 100).tolist()
        ids = [CLS]
        for index, count in enumerate(counts):
            ids += words[:count] + [QUESTION if index == 1 else ends]
            words = words[count:]
        rows.append([*ids, SEP])
    longest = max(map(len, rows))
    ids = np.array([row + [0] * (longest - len(row)) for row in rows], np.int64)
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows], np.int64)
    return {"input_ids": ids, "attention_mask": mask}


def goldens() -> Iterator[Case | VisionTaskCase]:
    for model, prefix in (("grounding-dino", "GroundingDino"), ("mm-grounding-dino", "MMGroundingDino")):
        yield from family(model, prefix)
        yield task(model, prefix)


def family(model: str, prefix: str) -> Iterator[Case]:
    def one(name: str, head: str, notes: str, inputs: Inputs | None = None, store: Store | None = None, **changes: Any) -> Case:
        inputs = inputs or images((60, 74)) | texts((2, 3, 1), (1, 2))
        return Case(f"{model}/{name}", f"{prefix}{head}", config(prefix, **changes), inputs, notes, store, **OTHER)

    # What is Grounding DINO's is known from its own cases.
    known = prefix.startswith("MM")
    yield one("base", "Model", "Two images and texts, the second of each padded; boxes that stay.")
    yield one("detection", OBJECTS, "Two images and texts, the second of each padded; a further feature map by a strided convolution.")
    if not known:
        types = {"token_type_ids": np.array([[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 1, 0]], np.int64)}
        other = {"num_feature_levels": 5, "positional_embedding_temperature": 100, "activation_function": "gelu", "layer_norm_eps": 0.01}
        unmasked = images((67, 140), masked=False) | {"input_ids": texts((2, 2), (2, 2))["input_ids"][:, :7]} | types
        yield one("two-further", OBJECTS, "Two further feature maps, token types, neither mask; other functions.", unmasked, **other)
        maps = resnet(out_features=["stage3", "stage4"])
        yield one("resnet", OBJECTS, "A ResNet, and two further feature maps.", images((130, 97)) | texts((4,), (0,)), backbone=maps)
        yield one("one-level", OBJECTS, "The last feature map alone.", backbone=swin(out_features=["stage2"]), num_feature_levels=1)
    learned = {"position_embedding_type": "learned", "max_text_len": 9}
    yield one("learned", OBJECTS, "Learned positions; texts without padding, as long as they may be.", images((66, 74)) | texts((2, 3), (4, 1)), **learned)
    unshared = {"decoder_bbox_embed_share": False, "decoder_layers": 3}
    if known:
        unshared["decoder_cls_embed_share"] = False
    yield one("unshared", OBJECTS, "Heads of each layer's own.", **unshared)
    small = {"encoder_layers": 1, "text": {"hidden_size": 4, "num_hidden_layers": 1}}
    yield one("file", OBJECTS, "model.safetensors as save_pretrained writes it.", store=stores.whole, **small)


def tokenizer(positions: int) -> PreTrainedTokenizerBase:
    """BERT's over the small vocabulary, whose special tokens and marks have the ids that they have in BERT's."""
    known = {"[PAD]": 0, "[UNK]": 100, "[CLS]": CLS, "[SEP]": SEP, "[MASK]": 103, ".": STOP, "?": QUESTION}
    others = iter(token for token in vocabulary() if token not in known)
    ids = {index: token for token, index in known.items()}
    vocab = {ids[index] if index in ids else next(others, f"[unused{index}]"): index for index in range(WORDS)}
    return transformers.BertTokenizerFast(vocab=vocab, do_lower_case=True, model_max_length=positions)


def task(model: str, prefix: str) -> VisionTaskCase:
    positions = 24
    # A large epsilon keeps scores apart.
    made = config(prefix, text={"max_position_embeddings": positions}, max_text_len=positions, layer_norm_eps=1.0)
    phrases = ["a red disc.", "a cat. a tail.", "the blue bars."]
    everything = {"candidate_labels": phrases, "threshold": 0.0}
    return VisionTaskCase(
        f"{model}/tasks/zero-shot-object-detection",
        "zero-shot-object-detection",
        f"{prefix}ForObjectDetection",
        made,
        GroundingDinoImageProcessorPil(size={"shortest_edge": 60, "longest_edge": 90}),
        (
            Call("rgb.png", everything),
            Call(["wide.png", "oriented.png"], {"candidate_labels": phrases[:2], "threshold": 0.77 if prefix.startswith("MM") else 0.85}),
            Call("grey.png", everything | {"top_k": 3}),
        ),
        "One picture and several; all boxes, some, the best.",
        tokenizer(positions),
        answers=careful,
        attention=ATTENTION,
    )
