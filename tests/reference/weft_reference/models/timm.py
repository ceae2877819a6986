"""Networks of the library timm: their hidden states, classes and feature maps, and EdgeTAM on RepViT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import PreTrainedConfig

from weft_reference import stores, timm_networks
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models.sam2 import prompt_cases, prompted

MODELS = ("timm_wrapper", "timm_backbone", "edgetam_vision_model", "edgetam")
RESNET = {"layers": [1, 1, 2, 1], "channels": [8, 12, 16, 24]}
REPVIT = {"embed_dim": [8, 40, 48, 56], "depth": [1, 2, 2, 1]}
SWIN = {"img_size": 40, "window_size": 3, "embed_dim": 8, "depths": [2, 3, 1], "num_heads": [1, 2, 4]}
VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 2}


def wrapper(architecture: str, **arguments: Any) -> PreTrainedConfig:
    return transformers.TimmWrapperConfig(architecture=architecture, model_args=arguments or None, num_labels=3)


def pixels(size: tuple[int, int], channels: int = 3, batch: int = 2) -> dict[str, Any]:
    return {"pixel_values": floats("pixels", (batch, channels, *size), -2.0, 2.0)}


def goldens() -> Iterator[Case]:
    timm_networks.load()

    def one(
        name: str,
        notes: str,
        made: PreTrainedConfig,
        size: tuple[int, int] = (64, 50),
        store: Store | None = None,
        head: str = "Model",
        channels: int = 3,
    ) -> Case:
        return Case(f"timm_wrapper/{name}", f"TimmWrapper{head}", made, pixels(size, channels), notes, store)

    classes = "ForImageClassification"
    yield one("resnet", "Layers of three convolutions.", wrapper("resnet50.a1_in1k", **RESNET))
    yield one("resnet-basic", "Layers of two convolutions.", wrapper("resnet18", **RESNET))
    deep = wrapper("resnet26t", **RESNET, stem_width=8)
    yield one("resnet-deep", "Three convolutions in the stem, averaged shortcuts, odd sizes.", deep)
    yield one("resnext", "Groups of convolutions.", wrapper("resnext50_32x4d", **RESNET, cardinality=2, base_width=32))
    unpooled = wrapper("resnet34d", **RESNET, stem_width=6, in_chans=1)
    unpooled.do_pooling = False
    yield one("resnet-grey", "Grey images, no pooling.", unpooled, channels=1)
    yield one("resnet-classes", "Three classes.", wrapper("resnet101", **RESNET), head=classes)
    yield one("resnet-file", "As save_pretrained writes it.", wrapper("resnet50", **RESNET), store=stores.whole)
    stored = wrapper("resnet18", **RESNET)
    yield one("resnet-classes-file", "As save_pretrained writes it.", stored, store=stores.whole, head=classes)
    yield one("repvit", "Branches that are normalised each.", wrapper("repvit_m1.dist_in1k", **REPVIT))
    summed = wrapper("repvit_m1_0", **REPVIT)
    yield one("repvit-sum", "Branches normalised together; three classes by two layers.", summed, head=classes)
    yield one("vit", "A vision transformer.", wrapper("vit_base_patch16_224", **VIT), (32, 32))
    scaled = wrapper("vit_small_patch14_reg4_dinov2", **VIT, mlp_ratio=2.5, qkv_bias=False)
    yield one("vit-registers", "Register tokens, scaled layers.", scaled, (32, 32))
    small = "Shifted windows over grids that are no whole windows, and one smaller than a window."
    yield one("swin", small, wrapper("swin_tiny_patch4_window7_224.ms_in1k", **SWIN), (40, 40))
    stages = SWIN | {"window_size": [2, 4, 3], "always_partition": True, "mlp_ratio": 2.5, "qkv_bias": False, "in_chans": 1}
    yield one("swin-partition", "Windows of each stage, shifted over any grid.", wrapper("swin_s3_small_224", **stages), (40, 40), channels=1)
    yield one("swin-classes", "Three classes.", wrapper("swin_base_patch4_window7_224", **SWIN), (40, 40), head=classes)
    mean = wrapper("vit_tiny_patch16_224", **VIT, global_pool="avg")
    yield one("vit-mean", "The mean of patches stands for an image.", mean, (32, 32))
    yield one("vit-classes", "Three classes.", wrapper("deit_tiny_patch16_224", **VIT), (32, 32), head=classes)
    stored = wrapper("vit_tiny_patch16_224", **VIT, init_values=0.1)
    yield one("vit-file", "As save_pretrained writes it.", stored, (32, 32), stores.whole)
    yield from backbones()
    yield from edgetam()


def backbones() -> Iterator[Case]:
    def one(name: str, notes: str, backbone: str, size: tuple[int, int], batch: int = 2, **changes: Any) -> Case:
        made = transformers.TimmBackboneConfig(backbone=backbone, **changes)
        return Case(f"timm_backbone/{name}", "TimmBackbone", made, pixels(size, changes.get("num_channels", 3), batch), notes)

    yield one("last", "The last of five maps.", "resnet18", (64, 50))
    yield one("some", "Two maps of grey images.", "resnet18d", (40, 32), out_indices=[1, 3], num_channels=1)
    yield one("repvit", "All maps but the last.", "repvit_m0_9", (32, 32), out_indices=[0, 1, 2])
    yield one("swin", "The third of four stages.", "swin_tiny_patch4_window7_224", (224, 224), batch=1, out_indices=[2], num_channels=1)
    yield one("negative", "Indices from the last; a stem that grows wider.", "resnet10t", (32, 32), out_indices=[2, -1])


def encoder(**changes: Any) -> PreTrainedConfig:
    backbone = wrapper("repvit_m1.dist_in1k", **REPVIT, in_chans=3, features_only=True, out_indices=[0, 1, 2, 3])
    maps = {"fpn_hidden_size": 16, "backbone_channel_list": [56, 48, 40, 8]}
    maps |= {"backbone_feature_sizes": [[24, 24], [12, 12], [6, 6]]}
    return transformers.EdgeTamVisionConfig(**({"backbone_config": backbone} | maps | changes))


def edgetam() -> Iterator[Case]:
    def one(name: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        made = encoder(**changes)
        return Case(f"edgetam_vision_model/{name}", "EdgeTamVisionModel", made, pixels((96, 96)), notes, store)

    yield one("base", "Three of four maps, the second of which has one added.")
    other = {"fpn_top_down_levels": [0, 1, 2], "num_feature_levels": 4, "fpn_kernel_size": 3, "fpn_padding": 1}
    yield one("all-levels", "All maps, each with the one above it; larger windows.", **other)
    yield one("file", "model.safetensors as save_pretrained writes it.", stores.whole)
    vit = wrapper("vit_tiny_patch16_224", **(VIT | {"img_size": 96}), features_only=True, out_indices=[0, -1])
    two = {"backbone_channel_list": [16, 16], "fpn_top_down_levels": [], "num_feature_levels": 2}
    yield one("vit", "The maps of two layers of a vision transformer.", backbone_config=vit, **two)

    def make(**decoder: Any) -> PreTrainedConfig:
        return prompted("EdgeTam", encoder(), 96, 16, decoder)

    yield from prompt_cases("edgetam", "EdgeTam", make, 96, 16)
