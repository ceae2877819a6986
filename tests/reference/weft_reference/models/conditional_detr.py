"""Conditional and Deformable DETR: positions of both kinds, masks, one and several feature maps, refined boxes, shared heads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import ConditionalDetrConfig, ConditionalDetrImageProcessorPil, DeformableDetrConfig, DeformableDetrImageProcessorPil, ResNetConfig

from weft_reference import stores
from weft_reference.cases import Case, Inputs, Store
from weft_reference.models.detr import images
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.detr import LABELS, tasks

MODELS = ("conditional_detr", "deformable_detr")
OBJECTS = "ForObjectDetection"
LAYOUT = {"embedding_size": 4, "hidden_sizes": [6, 8, 10, 12], "depths": [1, 1, 1, 1], "layer_type": "basic"}
TINY = {
    "num_queries": 5,
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_ffn_dim": 20,
    "encoder_attention_heads": 2,
    "decoder_layers": 3,
    "decoder_ffn_dim": 24,
    "decoder_attention_heads": 4,
}


def conditional(**changes: Any) -> ConditionalDetrConfig:
    return ConditionalDetrConfig(backbone_config=ResNetConfig(**LAYOUT, out_features=["stage4"]), **(TINY | changes))


def deformable(stages: tuple[int, ...] = (2, 3, 4), **changes: Any) -> DeformableDetrConfig:
    backbone = ResNetConfig(**LAYOUT, out_features=[f"stage{stage}" for stage in stages])
    # Group normalisation has 32 groups.
    sizes = TINY | {"d_model": 32, "num_feature_levels": 4, "encoder_n_points": 2, "decoder_n_points": 3}
    return DeformableDetrConfig(backbone_config=backbone, **(sizes | changes))


def case(
    path: str, head: str, config: transformers.PreTrainedConfig, notes: str, inputs: Inputs | None = None, store: Store | None = None, **more: Any
) -> Case:
    prefix = "ConditionalDetr" if config.model_type == "conditional_detr" else "DeformableDetr"
    return Case(f"{config.model_type}/{path}", f"{prefix}{head}", config, inputs or images((66, 90)), notes, store, **more)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("base", "Model", conditional(), "Two images, the second padded.")
    yield case("object-detection", OBJECTS, conditional(num_labels=3), "Three classes.")
    yield case(
        "norms-between",
        OBJECTS,
        conditional(auxiliary_loss=True, position_embedding_type="learned", activation_function="gelu"),
        "The decoder's norm behind each layer, learned positions, another function, no mask.",
        images((40, 33), masked=False),
    )
    yield case("file", OBJECTS, conditional(decoder_layers=2), "The names of published checkpoints.", store=stores.whole)
    yield from tasks(conditional(num_labels=len(LABELS)), "conditional_detr", "ConditionalDetr", 0.49, ConditionalDetrImageProcessorPil)

    yield case("base", "Model", deformable(), "Two images, the second padded; a further feature map by a strided convolution.", images((130, 97)))
    yield case("object-detection", OBJECTS, deformable(num_labels=3), "Heads that all layers share.")
    yield case("box-refine", OBJECTS, deformable(with_box_refine=True, num_labels=3), "Boxes refined from layer to layer, by shared heads.")
    yield case(
        "single-scale",
        OBJECTS,
        deformable(stages=(4,), num_feature_levels=1, position_embedding_type="learned", activation_function="gelu"),
        "One feature map, learned positions, another function, no mask.",
        images((70, 41), masked=False),
    )
    yield case(
        "two-further", OBJECTS, deformable(stages=(3, 4)), "Two further feature maps, the second of the first.", images((130, 97))
    )
    chosen = {"two_stage": True, "with_box_refine": True, "two_stage_num_proposals": 7, "num_labels": 3}
    # Boxes of padding are infinite in the encoder's logits.
    infinite = {"without": ("enc_outputs_coord_logits",)}
    yield case("two-stage", OBJECTS, deformable(**chosen), "Object queries chosen from the encoder's positions.", **infinite)
    store = {"store": stores.whole, "inputs": images((66, 90), masked=False)} | infinite
    yield case("two-stage-file", OBJECTS, deformable(decoder_layers=1, encoder_layers=1, **chosen), "The names of published checkpoints.", **store)
    yield case("file", OBJECTS, deformable(encoder_layers=1, decoder_layers=2, with_box_refine=True), "The names of published checkpoints.", store=stores.whole)
    yield from tasks(deformable(num_labels=len(LABELS)), "deformable_detr", "DeformableDetr", 0.49, DeformableDetrImageProcessorPil, (80, 130))
