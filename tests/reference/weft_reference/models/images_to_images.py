"""Vision models that no other module has: ViT-MAE, RADIO, Swin2SR, MaskFormer's Swin, UVDoc, MGP-STR, ImageGPT, CHMv2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import transformers
from transformers import PreTrainedConfig

from weft_reference import stores
from weft_reference.backbones import backbone
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, integers
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.depth import depth
from weft_reference.vision_tasks.made import super_resolution
from weft_reference.vision_tasks.text_images import scene_text

MODELS = ("vit_mae", "radio", "swin2sr", "uvdoc", "uvdoc_backbone", "mgp-str", "maskformer-swin", "imagegpt", "chmv2")
ROOTS = MODELS
STORED = "model.safetensors as save_pretrained writes it."
VIT: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 4}
MAE: dict[str, Any] = VIT | {
    "intermediate_size": 20,
    "image_size": 16,
    "decoder_hidden_size": 12,
    "decoder_num_hidden_layers": 2,
    "decoder_num_attention_heads": 3,
    "decoder_intermediate_size": 28,
}
SR: dict[str, Any] = {"image_size": 16, "embed_dim": 12, "depths": [2, 1], "num_heads": [2, 3], "window_size": 4}
DOCUMENT: dict[str, Any] = {
    "resnet_head": [[3, 4], [4, 6]],
    "resnet_configs": [[[6, 6, 1, False], [6, 6, 3, False]], [[6, 8, 1, True], [8, 8, 2, False]]],
    "stage_configs": [[[8, 1]], [[8, 3], [8, 2]], [[8, 4]]],
}
TEXT: dict[str, Any] = VIT | {
    "image_size": [8, 24],
    "max_token_length": 5,
    "num_character_labels": 7,
    "num_bpe_labels": 11,
    "num_wordpiece_labels": 9,
    "mlp_ratio": 1.5,
}


def pixels(size: tuple[int, int], channels: int = 3) -> dict[str, Any]:
    return {"pixel_values": floats("pixels", (2, channels, *size), -2.0, 2.0)}


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield from vit_mae()
    yield from radio()
    yield from swin2sr()
    yield from uvdoc()
    yield from mgp_str()
    yield from maskformer_swin()
    yield from imagegpt()
    yield from chmv2()


def noise(count: int) -> np.ndarray:
    """Numbers in another order for each of two images, that half precision tells apart."""
    return np.stack([np.random.default_rng(seed).permutation(count) for seed in (3, 5)]).astype(np.float32) / 16


def vit_mae() -> Iterator[Case]:
    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = transformers.ViTMAEConfig(**(MAE | changes))
        size = config.image_size
        inputs = pixels((size, size)) | {"noise": noise((size // config.patch_size) ** 2)}
        return Case(f"vit_mae/{name}", f"ViTMAE{head}", config, inputs, notes, store)

    yield one("base", "Model", "A quarter of the patches.")
    yield one("pre-training", "ForPreTraining", "The decoder puts its mask token where patches are masked.")
    other = {"qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 1e-2}
    yield one("few", "ForPreTraining", "Few patches masked; no biases.", mask_ratio=0.3, **other)
    yield one("file", "ForPreTraining", STORED, stores.whole, image_size=24, patch_size=6)


def radio() -> Iterator[Case]:
    def one(name: str, notes: str, size: tuple[int, int], store: Store | None = None, **changes: Any) -> Case:
        sizes = VIT | {"max_img_size": 24, "num_cls_tokens": 2, "num_registers": 3, "mlp_ratio": 1.5}
        config = transformers.RadioConfig(**(sizes | changes))
        return Case(f"radio/{name}", "RadioModel", config, pixels(size), notes, store)

    yield one("base", "More columns than rows, of which there are positions for as many.", (16, 24))
    yield one("large", "More patches than positions; a gated MLP.", (36, 28), use_swiglu_ffn=True)
    yield one("small", "Few patches, one class token; no biases.", (12, 8), summary_idxs=[1], qkv_bias=False, hidden_act="relu")
    yield one("file", f"With a projection of videos; {STORED}", (12, 20), stores.whole, video_temporal_patch_size=2)


def swin2sr() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, head: str, notes: str, size: tuple[int, int] = (12, 20), store: Store | None = None, **changes: Any) -> Case:
        config = transformers.Swin2SRConfig(**(SR | changes))
        return Case(f"swin2sr/{name}", f"Swin2SR{head}", config, pixels(size, config.num_channels), notes, store)

    larger = "ForImageSuperResolution"
    yield one("base", "Model", "Images that are no squares, in windows that are shifted.")
    yield one("pixelshuffle", larger, "Four times as large.", upscale=4)
    yield one("three", larger, "Three times as large; three convolutions at the end of stages.", upscale=3, resi_connection="3conv")
    yield one("aux", larger, "Beside bicubic interpolation.", upsampler="pixelshuffle_aux", img_range=2.0)
    yield one("direct", larger, "In one step; no biases.", upsampler="pixelshuffledirect", qkv_bias=False, hidden_act="relu")
    yield one("nearest", larger, "By nearest neighbours.", upsampler="nearest+conv", upscale=4)
    yield one("one-channel", larger, "As large as it was, of one channel; one window.", (4, 8), upsampler="", num_channels=1, upscale=1, image_size=4)
    yield one("file", larger, STORED, (8, 8), stores.whole)
    yield super_resolution("swin2sr", f"Swin2SR{larger}", transformers.Swin2SRConfig(**SR), transformers.Swin2SRImageProcessorPil())


def document(**changes: Any) -> PreTrainedConfig:
    every = {"out_features": ["stage1", "stage2", "stage3"]}
    made = transformers.UVDocBackboneConfig(**(DOCUMENT | every))
    sizes = {"bridge_connector": [8, 6], "out_point_positions2D": [[6, 4], [4, 2]]}
    return transformers.UVDocConfig(backbone_config=made, **(sizes | changes))


def uvdoc() -> Iterator[Case]:
    yield from backbone("uvdoc_backbone", "UVDoc", DOCUMENT, (33, 50), config_class="UVDocBackboneConfig")

    def one(name: str, notes: str, size: tuple[int, int], store: Store | None = None, **changes: Any) -> Case:
        return Case(f"uvdoc/{name}", "UVDocModel", document(**changes), pixels(size), notes, store)

    yield one("base", "Two images; what is mirrored around maps.", (41, 50))
    yield one("edge", "The edge around maps, a smaller window.", (40, 32), padding_mode="replicate", kernel_size=3)
    yield one("file", STORED, (32, 48), stores.whole)


def mgp_str() -> Iterator[Case | VisionTaskCase]:
    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = transformers.MgpstrConfig(**(TEXT | changes))
        return Case(f"mgp-str/{name}", f"Mgpstr{head}", config, pixels((config.image_size[0], config.image_size[1])), notes, store)

    text = "ForSceneTextRecognition"
    yield one("base", "Model", "Hidden states of two images.")
    yield one("text", text, "Characters, pieces of bytes and of words.")
    yield one("no-bias", text, "No biases of queries, keys and values.", qkv_bias=False, layer_norm_eps=1e-2, patch_size=[4, 6])
    yield one("file", text, STORED, stores.whole)
    processor = transformers.ViTImageProcessorPil(size={"height": 8, "width": 24})
    vocabulary = ["[GO]", "[s]", *"wef42"]
    yield scene_text("mgp-str", f"Mgpstr{text}", transformers.MgpstrConfig(**TEXT), processor, vocabulary)


def maskformer_swin() -> Iterator[Case]:
    sizes = {"embed_dim": 8, "depths": [2, 2, 1], "num_heads": [2, 2, 4], "window_size": 4, "patch_size": 2, "mlp_ratio": 1.5}

    def one(name: str, head: str, notes: str, size: tuple[int, int], store: Store | None = None, **changes: Any) -> Case:
        config = transformers.MaskFormerSwinConfig(**(sizes | changes))
        return Case(f"maskformer-swin/{name}", f"MaskFormerSwin{head}", config, pixels(size), notes, store)

    yield one("base", "Model", "Images whose rows and columns are no multiple of windows or of patches.", (27, 38))
    yield one("small", "Model", "Images smaller than a window; no biases.", (6, 4), qkv_bias=False, hidden_act="relu", layer_norm_eps=1e-2)
    yield one("backbone", "Backbone", "The feature map of the last stage.", (32, 48))
    yield one("backbone-named", "Backbone", "Feature maps of stages by their names.", (21, 40), out_features=["stage1", "stage2", "stage3"])
    yield one("backbone-file", "Backbone", STORED, (24, 33), stores.whole, out_indices=[1, -1])


def imagegpt() -> Iterator[Case]:
    sizes = {"vocab_size": 17, "n_positions": 16, "n_embd": 12, "n_layer": 2, "n_head": 3}

    def one(name: str, head: str, notes: str, store: Store | None = None, **changes: Any) -> Case:
        config = transformers.ImageGPTConfig(**(sizes | changes))
        inputs = {"input_ids": integers("pixels", (2, 9), 0, 17), "attention_mask": np.array([[1] * 9, [1] * 6 + [0] * 3], np.int64)}
        return Case(f"imagegpt/{name}", f"ImageGPT{head}", config, inputs, notes, store)

    yield one("base", "Model", "Two images, the end of one is padding.")
    yield one("causal", "ForCausalImageModeling", "Logits of all tokens but one.")
    scaled = {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True, "n_inner": 20, "activation_function": "gelu"}
    yield one("scaled", "ForCausalImageModeling", "Scores that later layers make smaller.", **scaled)
    yield one("unscaled", "ForCausalImageModeling", "Scores that are not divided.", scale_attn_weights=False, layer_norm_epsilon=1e-2)
    yield one("image-classification", "ForImageClassification", "Three classes, of the mean of all positions.", num_labels=3)
    yield one("file", "ForImageClassification", STORED, stores.whole, num_labels=3)


def chmv2() -> Iterator[Case | VisionTaskCase]:
    def config(layout: dict[str, Any] | None = None, **changes: Any) -> PreTrainedConfig:
        vit = {"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 4, "num_attention_heads": 2, "patch_size": 8}
        vit |= {"num_register_tokens": 2, "out_indices": [1, 2, 3, 4], "return_class_token": True}
        sizes = {"post_process_channels": [6, 8, 10, 12], "fusion_hidden_size": 8, "head_hidden_size": 6, "patch_size": 8}
        sizes |= {"number_output_channels": 9}
        return transformers.CHMv2Config(backbone_config=transformers.DINOv3ViTConfig(**(vit | (layout or {}))), **(sizes | changes))

    def one(name: str, notes: str, size: tuple[int, int] = (24, 32), store: Store | None = None, **changes: Any) -> Case:
        return Case(f"chmv2/{name}", "CHMv2ForDepthEstimation", config(**changes), pixels(size), notes, store)

    yield one("mixed", "Bins between logarithmic and linear.")
    yield one("linear", "Linear bins; the class token is added.", bins_strategy="linear", norm_strategy="linear", readout_type="add")
    yield one("softmax", "Logarithmic bins; odd rows and columns.", (43, 30), bins_strategy="log", norm_strategy="softmax")
    yield one("sigmoid", "No class token.", norm_strategy="sigmoid", readout_type="ignore", max_depth=10.0, min_depth=0.1)
    two = {"post_process_channels": [6, 12], "reassemble_factors": [2, 0.5]}
    yield one("one-channel", "A depth itself; two maps, not normalised.", layout={"out_indices": [1, 3], "apply_layernorm": False}, number_output_channels=1, **two)
    yield one("file", STORED, store=stores.whole)
    processor = transformers.DPTImageProcessorPil(size={"height": 32, "width": 32}, keep_aspect_ratio=True, ensure_multiple_of=8)
    yield depth("chmv2", "CHMv2ForDepthEstimation", config(), processor)
