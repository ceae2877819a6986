"""TVP and VideoPrism: videos with texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.mask2former import resnet

MODELS = ("tvp", "videoprism_vision_model", "videoprism")
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}


def goldens() -> Iterator[Case]:
    yield from tvp()
    yield from videoprism()


def tvp() -> Iterator[Case]:
    def config(**changes: Any) -> PreTrainedConfig:
        sizes = SIZES | {"num_hidden_layers": 2, "vocab_size": 99, "max_position_embeddings": 12, "num_frames": 2, "max_img_size": 48}
        grid = {"visual_prompt_size": 10, "max_grid_row_position_embeddings": 5, "max_grid_col_position_embeddings": 4}
        return transformers.TvpConfig(backbone_config=resnet(out_features=["stage2"], hidden_sizes=[4, 10], depths=[1, 1]), **(sizes | grid | changes))

    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        # One video, since the reference shapes positions of columns by the number of videos; its text is padded.
        texts = {key: value[1:] for key, value in text_batch(99, (7, 4), "right").items() if key in ("input_ids", "attention_mask")}
        videos = {"pixel_values": floats("pixels", (1, 2, 3, 48, 48), -2.0, 2.0)}
        return Case(f"tvp/{name}", f"Tvp{head}", config(**changes), texts | videos, notes, store)

    yield one("base", "Model", "Hidden states of two frames and a padded text.")
    yield one("grounding", "ForVideoGrounding", "When it happens; learned pixels are added.", visual_prompter_apply="add", hidden_act="relu")
    yield one("no-pixels", "ForVideoGrounding", "Without learned pixels.", visual_prompter_apply="remove")
    yield one("file", "ForVideoGrounding", "model.safetensors as save_pretrained writes it.", store=stores.whole)


def videoprism() -> Iterator[Case]:
    layers = {"num_spatial_layers": 2, "num_temporal_layers": 1, "num_auxiliary_layers": 1, "num_frames": 3, "image_size": 16, "tubelet_size": [1, 4, 8]}
    texts = {"num_hidden_layers": 2, "vocab_size": 99, "max_position_embeddings": 12}

    def vision(**changes: Any) -> PreTrainedConfig:
        return transformers.VideoPrismVisionConfig(**(SIZES | layers | {"attn_logit_softcapping": 2.0} | changes))

    def videos(count: int = 2) -> dict[str, Any]:
        return {"pixel_values_videos": floats("pixels", (count, 3, 3, 16, 16), -2.0, 2.0)}

    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        return Case(f"videoprism_vision_model/{name}", f"VideoPrism{head}", vision(**changes), videos(), notes, store)

    yield one("base", "VisionModel", "Two layers within frames, one along time.")
    yield one("video", "VideoModel", "Embeddings of length 1.")
    yield one("no-norm", "VideoModel", "Embeddings as they are; no biases, two auxiliary layers.", apply_l2norm=False, qkv_bias=False, num_auxiliary_layers=2)
    yield one("classification", "ForVideoClassification", "Three classes.", num_labels=3)
    yield one("file", "VideoModel", "model.safetensors as save_pretrained writes it.", store=stores.whole)

    def both(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        made = transformers.VideoPrismConfig(vision_config=vision().to_dict(), text_config=SIZES | texts | changes)
        tokens = {key: value for key, value in text_batch(99, (7, 4), "right").items() if key in ("input_ids", "attention_mask")}
        return Case(f"videoprism/{name}", "VideoPrismClipModel", made, videos(3) | tokens, notes, store)

    yield both("base", "Three videos and two texts, one of them padded.")
    yield both("no-norm", "Texts' embeddings as they are; no biases.", apply_l2norm=False, qkv_bias=False, attn_logit_softcapping=1.0)
    yield both("file", "model.safetensors as save_pretrained writes it.", store=stores.whole)
