"""CLIPSeg: CLIP with a decoder of masks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats
from weft_reference.models import clip_text, clip_vision

DECODER = {"projection_dim": 10, "extract_layers": [0, 1], "reduce_dim": 8, "decoder_num_attention_heads": 2, "decoder_intermediate_size": 14}


def config(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **changes: Any) -> transformers.CLIPSegConfig:
    sizes = [clip_text.sizes(**(text or {})), clip_vision.sizes(**({"hidden_size": 12, "num_attention_heads": 3} | (vision or {})))]
    for size in sizes:
        size.pop("projection_dim")
    return transformers.CLIPSegConfig(text_config=sizes[0], vision_config=sizes[1], **(DECODER | changes))


def goldens() -> Iterator[Case]:
    def one(name: str, head: str, notes: str, edge: int = 12, store: Store | None = None, **changes: Any) -> Case:
        inputs = clip_text.texts() | {"pixel_values": floats("pixels", (2, 3, edge, edge), -2.0, 2.0)}
        return Case(f"clipseg/{name}", f"CLIPSeg{head}", config(**changes), inputs, notes, store, forward={"output_hidden_states": True} if head != "Model" else {})

    segmentation = "ForImageSegmentation"
    yield one("base", "Model", "Two images, two texts, the second padded.")
    yield one("segmentation", segmentation, "Images of the configuration's size.")
    yield one("larger", segmentation, "Larger images, whose position embeddings are interpolated.", 20)
    deep = {"extract_layers": [0, 2, 3], "conditional_layer": 1, "vision": {"num_hidden_layers": 4, "layer_norm_eps": 0.01, "hidden_act": "gelu"}}
    yield one("complex", segmentation, "Pixels in three steps; the second layer of the decoder is modulated.", 16, use_complex_transposed_convolution=True, **deep)
    yield one("end-by-largest-id", segmentation, "eos_token_id 2, as in old configurations.", text={"eos_token_id": 2})
    yield one("file", segmentation, "model.safetensors as save_pretrained writes it.", 12, stores.whole)
