"""Vision and video: the shapes of published checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import transformers

from published.made import Checkpoint, floats


def vit(batch: int) -> Checkpoint:
    """google/vit-base-patch16-224"""
    return Checkpoint(
        "ViTForImageClassification",
        transformers.ViTConfig(num_labels=1000),
        {"pixel_values": floats(batch, 3, 224, 224)},
    )


def detr() -> Checkpoint:
    """facebook/detr-resnet-50: the short side of the image at 800."""
    config = transformers.DetrConfig(backbone_config=transformers.ResNetConfig(out_features=["stage4"]), num_labels=91)
    inputs = {"pixel_values": floats(1, 3, 800, 1066), "pixel_mask": np.ones((1, 800, 1066), np.int64)}
    return Checkpoint("DetrForObjectDetection", config, inputs)


def segformer() -> Checkpoint:
    """nvidia/segformer-b0-finetuned-ade-512-512"""
    config = transformers.SegformerConfig(num_labels=150)
    return Checkpoint("SegformerForSemanticSegmentation", config, {"pixel_values": floats(1, 3, 512, 512)})


def rt_detr() -> Checkpoint:
    """PekingU/rtdetr_r18vd"""
    backbone = transformers.RTDetrResNetConfig(
        layer_type="basic",
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        out_features=["stage2", "stage3", "stage4"],
    )
    config = transformers.RTDetrConfig(
        backbone_config=backbone,
        encoder_in_channels=[128, 256, 512],
        hidden_expansion=0.5,
        decoder_layers=3,
        num_labels=80,
    )
    return Checkpoint("RTDetrForObjectDetection", config, {"pixel_values": floats(1, 3, 640, 640)})


def sam() -> Checkpoint:
    """facebook/sam-vit-base: one point. Its mask decoder takes a hundredth of the time."""
    points = np.array([[[[512.0, 400.0]]]], np.float32)
    inputs = {"pixel_values": floats(1, 3, 1024, 1024), "input_points": points}
    return Checkpoint("SamModel", transformers.SamConfig(), inputs)


def depth_anything() -> Checkpoint:
    """depth-anything/Depth-Anything-V2-Small-hf"""
    backbone = transformers.Dinov2Config(
        hidden_size=384,
        num_attention_heads=6,
        image_size=518,
        patch_size=14,
        out_features=["stage3", "stage6", "stage9", "stage12"],
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=14,
        reassemble_hidden_size=384,
        neck_hidden_sizes=[48, 96, 192, 384],
        fusion_hidden_size=64,
    )
    return Checkpoint("DepthAnythingForDepthEstimation", config, {"pixel_values": floats(1, 3, 518, 518)})


def videomae() -> Checkpoint:
    """MCG-NJU/videomae-base-finetuned-kinetics: 16 frames."""
    config = transformers.VideoMAEConfig(num_labels=400)
    return Checkpoint("VideoMAEForVideoClassification", config, {"pixel_values": floats(1, 16, 3, 224, 224)})


def mobilevit() -> Checkpoint:
    """apple/mobilevit-small"""
    config = transformers.MobileViTConfig(num_labels=1000)
    return Checkpoint("MobileViTForImageClassification", config, {"pixel_values": floats(1, 3, 256, 256)})


def convnext() -> Checkpoint:
    """facebook/convnext-tiny-224"""
    config = transformers.ConvNextConfig(num_labels=1000)
    return Checkpoint("ConvNextForImageClassification", config, {"pixel_values": floats(1, 3, 224, 224)})


def swin() -> Checkpoint:
    """microsoft/swin-tiny-patch4-window7-224"""
    config = transformers.SwinConfig(num_labels=1000)
    return Checkpoint("SwinForImageClassification", config, {"pixel_values": floats(1, 3, 224, 224)})


CHECKPOINTS: Mapping[str, Callable[[], Checkpoint]] = {
    "vit": lambda: vit(1),
    "vit-8": lambda: vit(8),
    "detr": detr,
    "segformer": segformer,
    "rt_detr": rt_detr,
    "sam": sam,
    "depth_anything": depth_anything,
    "videomae": videomae,
    "mobilevit": mobilevit,
    "convnext": convnext,
    "swin": swin,
}
