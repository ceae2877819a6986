"""OneFormer: queries that a text of the task leads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from torch.nn.functional import interpolate
from transformers import OneFormerImageProcessorPil, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.oneformer import image_processing_pil_oneformer

from weft_reference import stores
from weft_reference.byte_pairs import merges, vocabulary
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, integers
from weft_reference.models.mask2former import resnet, swin
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.segmentation import steady

# Logits of layers before the last, and what is handed on of all layers where they are asked for.
OTHER = ("transformer_decoder_auxiliary", "auxiliary_predictions", "encoder_hidden", "pixel_decoder_hidden", "transformer_decoder_hidden")


def config(backbone: PreTrainedConfig, **changes: Any) -> PreTrainedConfig:
    sizes = {"conv_dim": 32, "mask_dim": 32, "hidden_dim": 32, "encoder_feedforward_dim": 20, "dim_feedforward": 24, "task_seq_len": 9}
    counts = {"encoder_layers": 2, "decoder_layers": 5, "num_attention_heads": 2, "num_queries": 5, "num_labels": 3}
    return transformers.OneFormerConfig(backbone_config=backbone, **(sizes | counts | changes))


def goldens() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, head: str, notes: str, backbone: PreTrainedConfig, size: tuple[int, int] = (64, 64), store: Store | None = None, **changes: Any) -> Case:
        made = config(backbone, **changes)
        inputs = {"pixel_values": floats("pixels", (2, 3, *size), -2.0, 2.0), "task_inputs": integers("task", (2, made.task_seq_len), 0, 20)}
        inputs["task_inputs"][1, 5:] = 0
        return Case(f"oneformer/{name}", f"OneFormer{head}", made, inputs, notes, store, without=OTHER)

    segmentation = "ForUniversalSegmentation"
    yield one("base", "Model", "Queries before and after all layers.", swin())
    yield one("swin", segmentation, "A Swin; images of another size than the configuration's.", swin(), (50, 91))
    yield one("resnet", segmentation, "A ResNet; images of odd rows and columns.", resnet(), (70, 101), mask_dim=32)
    other = {"pre_norm": True, "use_task_norm": False, "layer_norm_eps": 1e-5, "query_dec_layers": 1}
    yield one("pre-norm", segmentation, "Norms before attention; queries that begin with zeros.", resnet(), (64, 96), **other)
    strides = {"strides": [4, 16, 32, 64], "decoder_layers": 2}
    yield one("larger-strides", segmentation, "Two further levels of the pyramid; one layer.", resnet(downsample_in_first_stage=False), (64, 64), **strides)
    yield one("file", segmentation, "model.safetensors as save_pretrained writes it.", swin(), store=stores.whole)
    yield task()


def tokenizer(positions: int) -> PreTrainedTokenizerBase:
    """CLIP's, which pads with 0: the processor makes that of padding, the pipeline leaves it as it is."""
    vocab = {token: index for index, token in enumerate(["<pad>", *vocabulary()])}
    return transformers.CLIPTokenizer(vocab=vocab, merges=merges(), model_max_length=positions, pad_token="<pad>")


def resize(maps: torch.Tensor, size: tuple[int, int], interpolation: str) -> torch.Tensor:
    """torchvision's, of tensors."""
    return interpolate(maps, size=size, mode=interpolation, align_corners=False, antialias=True)


def without_torchvision(task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """The pipeline, whose processor takes one function of torchvision, which is not installed."""
    image_processing_pil_oneformer.tvF = SimpleNamespace(resize=resize, InterpolationMode=SimpleNamespace(BILINEAR="bilinear"))
    return steady(task, model, folder)


def task() -> VisionTaskCase:
    made = config(swin(), task_seq_len=24)
    made.id2label = {index: f"label {index}" for index in range(5)}
    made.label2id = {name: index for index, name in made.id2label.items()}
    some = {"threshold": 0.25, "mask_threshold": 0.01, "overlap_mask_area_threshold": 0.1}
    return VisionTaskCase(
        "oneformer/tasks/image-segmentation",
        "image-segmentation",
        "OneFormerForUniversalSegmentation",
        made,
        OneFormerImageProcessorPil(size={"shortest_edge": 60, "longest_edge": 90}),
        (Call("rgb.png", some), Call(["tall.png", "wide.png"], {"subtask": "semantic"}), Call("rgb.png")),
        "Panoptic and semantic; and the usual thresholds. Instances need a file of what can be counted.",
        tokenizer(24),
        answers=without_torchvision,
    )
