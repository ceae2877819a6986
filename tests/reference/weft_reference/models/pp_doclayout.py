"""PP-DocLayout: RT-DETR with a reading order, masks or quadrilaterals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.nn.functional import interpolate
from transformers import PreTrainedModel

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.models.pp_ocr import STAGES, hgnet
from weft_reference.models.rt_detr import images
from weft_reference.tasks import Answer, Call
from weft_reference.vision_tasks import TOO_CLOSE_TO_A_PIXEL, VisionTaskCase
from weft_reference.vision_tasks.made import each
from weft_reference.vision_tasks.text_images import Processor, bound, tensor

MODELS = ("pp_doclayout_v2", "pp_doclayout_v3", "pp_doclayout_v4")
# The order of reading takes edges as these, and numbers that are off by 4e-6 move them by 0.004.
THOUSANDTHS = 1000
TOO_CLOSE_TO_AN_EDGE = 0.004


def config(version: str = "V3", **changes: Any) -> transformers.PreTrainedConfig:
    tiny = {
        "encoder_hidden_dim": 16,
        "encoder_in_channels": [10, 12, 16],
        "encoder_ffn_dim": 20,
        "encoder_attention_heads": 2,
        "d_model": 16,
        "num_queries": 6,
        "decoder_in_channels": [16, 16, 16],
        "decoder_ffn_dim": 24,
        "decoder_n_points": 2,
        "decoder_layers": 3,
        "decoder_attention_heads": 4,
        "num_labels": 3,
        "global_pointer_head_size": 7,
    }
    if version == "V2":
        tiny |= {"class_thresholds": [0.5, 0.45, 0.55], "class_order": [2, 0, 3]}
        del tiny["global_pointer_head_size"]
    masks = {"mask_feature_channels": [6, 8], "x4_feat_dim": 8, "num_prototypes": 5} if version == "V3" else {}
    backbone = hgnet(out_features=STAGES if version == "V3" else STAGES[1:])
    return getattr(transformers, f"PPDocLayout{version}Config")(**({"backbone_config": backbone} | tiny | masks | changes))


def goldens() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, notes: str, size: tuple[int, int] = (64, 96), store: Store | None = None, **changes: Any) -> Case:
        return Case(f"pp_doclayout_v3/{name}", "PPDocLayoutV3ForObjectDetection", config(**changes), images(*size), notes, store)

    yield one("object-detection", "Two images, three classes; first boxes around masks.")
    other = {"hidden_expansion": 0.5, "encode_proj_layers": [1, 2], "encoder_layers": 2, "normalize_before": True, "activation_function": "relu"}
    yield one("boxes", "First boxes of positions; narrow pyramids, two layers over two maps.", (96, 64), mask_enhanced=False, **other)
    yield one("file", "The names of published checkpoints.", store=stores.whole)
    yield task("V3", config())
    yield from quadrilaterals()
    yield from ordered()
    yield task("V2", layout_order())


def layout_order(**changes: Any) -> transformers.PreTrainedConfig:
    reader = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 20, "num_hidden_layers": 2}
    reader |= {"max_position_embeddings": 12, "coordinate_size": 3, "shape_size": 2, "num_classes": 4}
    reader |= {"relation_bias_embed_dim": 4, "relation_bias_scale": 3, "global_pointer_head_size": 5}
    made = config("V2", **changes)
    made.reading_order_config = type(made.reading_order_config)(**reader)
    return made


def ordered() -> Iterator[Case]:
    def one(
        name: str, notes: str, size: tuple[int, int] = (64, 96), store: Store | None = None, **changes: Any
    ) -> Case:
        made = layout_order(**changes)
        head = "PPDocLayoutV2ForObjectDetection"
        return Case(f"pp_doclayout_v2/{name}", head, made, images(*size), notes, store)

    yield one("object-detection", "Two images, three classes; some queries hold objects.")
    other = {"hidden_expansion": 0.5, "encode_proj_layers": [1, 2], "encoder_layers": 2, "num_denoising": 0}
    other |= {"class_thresholds": [0.0] * 3}
    yield one("all-objects", "All queries hold objects; two layers over two maps.", (96, 64), **other)
    yield one("no-objects", "No query holds an object.", class_thresholds=[1.0] * 3)
    yield one("file", "The names of published checkpoints.", store=stores.whole)


def quadrilaterals() -> Iterator[Case]:
    def one(name: str, notes: str, size: tuple[int, int] = (64, 96), store: Store | None = None, **changes: Any) -> Case:
        return Case(f"pp_doclayout_v4/{name}", "PPDocLayoutV4ForObjectDetection", config("V4", **changes), images(*size), notes, store)

    yield one("object-detection", "Two images, three classes.")
    other = {"s2r_steps": 1, "s2r_damping": 0.25, "num_denoising": 0, "encode_proj_layers": [1, 2], "hidden_expansion": 0.5}
    yield one("one-step", "A reading order followed over one query; narrow pyramids, two layers over two maps.", (96, 64), **other)
    yield one("file", "The names of published checkpoints.", store=stores.whole)


def answers(_task: str, model: PreTrainedModel, folder: Path) -> Answer:
    """`post_process_object_detection`, whose file needs `torchvision`, and its polygons OpenCV: these are left out."""
    size = json.loads((folder / "preprocessor_config.json").read_text())["size"]
    processor = bound(model.config.model_type, {"size": size})
    processor._extract_polygon_points_by_masks = lambda *_: []

    def one(path: str, parameters: dict[str, Any]) -> Any:
        pixels = tensor(path)
        resized = interpolate(pixels, size=(size["height"], size["width"]), mode="bicubic", antialias=False)
        outputs = model(pixel_values=resized.round().clamp(0, 255) / 255)
        found = processor.post_process_object_detection(outputs, target_sizes=[pixels.shape[-2:]], **parameters)[0]
        if hasattr(model, "reading_order"):
            check_edges(path, outputs.pred_boxes[0] * THOUSANDTHS)
        if ((found["boxes"] - found["boxes"].round()).abs() < TOO_CLOSE_TO_A_PIXEL).any():
            raise ValueError(f"{path}: a box is too close to a whole pixel; choose another picture")
        made = []
        for score, label, box in zip(found["scores"].tolist(), found["labels"].tolist(), found["boxes"].tolist(), strict=True):
            sides = dict(zip(("xmin", "ymin", "xmax", "ymax"), (int(side) for side in box), strict=True))
            made.append({"score": score, "label": model.config.id2label[label], "box": sides})
        return made

    return each(one)


def check_edges(path: str, boxes: torch.Tensor) -> None:
    """Edges are cut to whole thousandths before the order of reading is made of them."""
    edges = torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2])
    if ((edges - edges.round()).abs() < TOO_CLOSE_TO_AN_EDGE).any():
        raise ValueError(f"{path}: an edge of a box is too close to a whole thousandth; choose another picture")


def task(version: str, made: transformers.PreTrainedConfig) -> VisionTaskCase:
    kept = {"do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255, "resample": 3}
    settings = kept | {"image_mean": [0, 0, 0], "image_std": [1, 1, 1], "size": {"height": 64, "width": 64}}
    calls = (Call("page.png"), Call(["rgb.png", "wide.png"], {"threshold": 0.01}))
    notes = "A page, and two pictures with all that is found; in the order of reading, without polygons."
    processor = Processor(f"PPDocLayout{version}ImageProcessor", settings)
    name, head = f"pp_doclayout_{version.lower()}/tasks/object-detection", f"PPDocLayout{version}ForObjectDetection"
    return VisionTaskCase(name, "object-detection", head, made, processor, calls, notes, answers=answers)
