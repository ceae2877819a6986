"""Models of segmentation and of open vocabularies drawn at random."""

from __future__ import annotations

from functools import partial
from random import Random

import transformers
from transformers import PreTrainedConfig

from weft_reference.cases import Case
from weft_reference.drawn.common import ACTIVATIONS, EPSILONS, Changes, store, texts
from weft_reference.drawn.pictures import pixels
from weft_reference.inputs import floats, integers
from weft_reference.models import clip_text, clip_vision, clipseg, groupvit, mask2former, maskformer, owlvit, sam2, videomt, vitdet
from weft_reference.models.eomt import masking


def prompts(rng: Random, path: str, batch: int, size: int) -> Changes:
    """Points, boxes or both, of some prompts."""
    shape, given = (batch, rng.randint(1, 4)), {}
    kind = rng.choice(("points", "boxes", "both", "unlabelled"))
    if kind != "boxes":
        points = (*shape, rng.randint(1, 4))
        given["input_points"] = floats(f"{path}.points", (*points, 2), 0.0, size)
        if kind != "unlabelled":
            given["input_labels"] = integers(f"{path}.labels", points, -1, 2)
    if kind in ("boxes", "both"):
        given["input_boxes"] = floats(f"{path}.boxes", (*shape, 4), 0.0, size)
    return given


def sam(prefix: str, rng: Random, path: str) -> Case:
    heads, patch, width = rng.choice((1, 2, 3)), rng.choice((4, 8)), 16 * rng.randint(1, 2)
    size, layers = patch * rng.randint(4, 7), rng.randint(1, 4)
    vision = {"hidden_size": heads * rng.choice((4, 6, 8)), "num_hidden_layers": layers, "num_attention_heads": heads, "image_size": size}
    vision |= {"patch_size": patch, "window_size": rng.randint(0, 5), "output_channels": width, "num_pos_feats": width // 2}
    vision |= {"global_attn_indexes": sorted(rng.sample(range(layers), rng.randint(0, layers))), "use_rel_pos": rng.random() < 0.7}
    vision |= {"qkv_bias": rng.random() < 0.7, "layer_norm_eps": rng.choice(EPSILONS), "hidden_act": rng.choice(ACTIVATIONS)}
    prompt = {"hidden_size": width, "image_size": size, "patch_size": patch, "mask_input_channels": 4 * rng.randint(1, 4)}
    masks = {"hidden_size": width, "mlp_dim": rng.randint(8, 40), "num_attention_heads": rng.choice((1, 2, 4)), "num_hidden_layers": rng.randint(1, 3)}
    masks |= {"num_multimask_outputs": rng.randint(2, 4), "iou_head_hidden_dim": rng.randint(6, 20), "iou_head_depth": rng.randint(2, 4)}
    masks |= {"vit_dim": vision["hidden_size"]} if prefix == "SamHQ" else {}
    config = getattr(transformers, f"{prefix}Config")(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=masks)
    inputs = pixels(rng, path, 3, size)
    inputs |= prompts(rng, path, len(inputs["pixel_values"]), size)
    if rng.random() < 0.3:
        edge = 4 * (size // patch)
        inputs["input_masks"] = floats(f"{path}.masks", (len(inputs["pixel_values"]), 1, edge, edge), -8.0, 8.0)
    return Case(path, f"{prefix}Model", config, inputs, "Drawn at random.", store(rng))


def eomt(prefix: str, rng: Random, path: str) -> Case:
    config = queried(prefix, rng)
    probabilities = [float(rng.randint(0, 1)) for _ in range(config.num_blocks)]
    inputs = pixels(rng, path, 3, config.image_size)
    return Case(path, f"{prefix}ForUniversalSegmentation", config, inputs, "Drawn at random.", masking(*probabilities))


def queried(prefix: str, rng: Random) -> PreTrainedConfig:
    heads, patch, layers = rng.choice((1, 2, 3)), rng.choice((4, 8)), rng.randint(2, 5)
    sizes = {"hidden_size": heads * 4 * rng.randint(1, 3), "num_hidden_layers": layers, "num_attention_heads": heads}
    sizes |= {"image_size": patch * rng.randint(2, 6), "patch_size": patch, "num_blocks": rng.randint(1, layers)}
    sizes |= {"num_queries": rng.randint(1, 9), "num_register_tokens": rng.randint(1, 4), "num_labels": rng.randint(1, 6)}
    sizes |= {"num_upscale_blocks": rng.randint(1, 3), "layer_norm_eps": rng.choice(EPSILONS), "hidden_act": rng.choice(ACTIVATIONS)}
    if prefix != "EomtDinov3":
        sizes |= {"mlp_ratio": rng.randint(1, 4), "use_swiglu_ffn": rng.random() < 0.4}
    else:
        sizes |= {"intermediate_size": rng.randint(8, 40), "use_gated_mlp": rng.random() < 0.4, "mlp_bias": rng.random() < 0.6}
        sizes |= {name: rng.random() < 0.5 for name in ("query_bias", "key_bias", "value_bias", "proj_bias")}
    return getattr(transformers, f"{prefix}Config")(**sizes)


def frames(rng: Random, path: str) -> Case:
    return videomt.case(path, "Drawn at random.", queried("Videomt", rng), rng.randint(1, 3), rng.random() < 0.4, store(rng))


def towers(rng: Random) -> tuple[Changes, Changes]:
    text = clip_text.sizes(num_hidden_layers=rng.randint(1, 3), intermediate_size=rng.randint(8, 40), hidden_act=rng.choice(ACTIVATIONS))
    heads = rng.choice((1, 2, 3))
    vision = {"hidden_size": heads * rng.choice((4, 6)), "num_attention_heads": heads, "num_hidden_layers": rng.randint(2, 4)}
    vision |= {"image_size": 4 * rng.randint(2, 5), "patch_size": 4, "layer_norm_eps": rng.choice(EPSILONS)}
    text.pop("projection_dim")
    return text, clip_vision.sizes(**vision)


def clip_decoder(rng: Random, path: str) -> Case:
    text, vision = towers(rng)
    vision.pop("projection_dim")
    layers, heads = vision["num_hidden_layers"], rng.choice((1, 2))
    chosen = sorted(rng.sample(range(layers), rng.randint(1, layers)))
    sizes = clipseg.DECODER | {"extract_layers": chosen, "decoder_num_attention_heads": heads, "reduce_dim": heads * rng.choice((4, 6))}
    sizes |= {"conditional_layer": rng.randrange(len(chosen)), "use_complex_transposed_convolution": rng.random() < 0.5, "projection_dim": rng.randint(4, 14)}
    config = transformers.CLIPSegConfig(text_config=text, vision_config=vision, **sizes)
    inputs = clip_text.texts((9, 6, 4), key=path) | {"pixel_values": floats(path, (3, 3, *[4 * rng.randint(2, 6)] * 2), -2.0, 2.0)}
    return Case(path, "CLIPSegForImageSegmentation", config, inputs, "Drawn at random.", store(rng), forward={"output_hidden_states": True})


def open_vocabulary(prefix: str, rng: Random, path: str) -> Case:
    text, vision = towers(rng)
    config = owlvit.config(prefix, text, vision)
    images, queries = rng.randint(1, 3), rng.randint(1, 3)
    lengths = tuple(rng.randint(3, 9) for _ in range(images * queries))
    inputs = clip_text.texts((10, *lengths[1:]), pad=0, key=path) | clip_vision.images(config.vision_config, images, path)
    return Case(path, f"{prefix}ForObjectDetection", config, inputs, "Drawn at random.", store(rng))


def masked_attention(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    widths = {"mask_feature_size": rng.randint(4, 20), "hidden_dim": rng.choice((16, 24, 32)), "num_attention_heads": heads}
    counts = {"encoder_layers": rng.randint(1, 3), "decoder_layers": rng.randint(2, 6), "num_queries": rng.randint(1, 8), "num_labels": rng.randint(1, 5)}
    edges = (rng.randint(64, 100), rng.randint(64, 100))
    if rng.random() < 0.5:
        backbone = mask2former.swin(window_size=rng.randint(2, 5))
    else:
        backbone = mask2former.resnet()
    config = mask2former.config(backbone, pre_norm=rng.random() < 0.3, **widths, **counts)
    return Case(path, "Mask2FormerForUniversalSegmentation", config, pixels(rng, path, 3, *edges), "Drawn at random.", store(rng))


def queries(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    decoder = {"d_model": heads * rng.choice((4, 8)), "num_queries": rng.randint(1, 8), "decoder_layers": rng.randint(1, 4), "decoder_attention_heads": heads}
    config = maskformer.config(decoder | {"auxiliary_loss": rng.random() < 0.5}, 4 * rng.randint(2, 6), mask_feature_size=rng.randint(4, 20))
    inputs = pixels(rng, path, 3, rng.randint(64, 100), rng.randint(64, 100))
    return Case(path, "MaskFormerForInstanceSegmentation", config, inputs, "Drawn at random.", store(rng))


def plain_backbone(rng: Random, path: str) -> Case:
    layers, heads = rng.randint(1, 4), rng.choice((1, 2, 3))
    chosen = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": heads * 8, "window_size": rng.randint(2, 5)}
    blocks = {name: sorted(rng.sample(range(layers), rng.randint(0, layers))) for name in ("window_block_indices", "residual_block_indices")}
    relative = {"use_relative_position_embeddings": rng.random() < 0.6, "image_size": [8 * rng.randint(3, 7), 8 * rng.randint(3, 7)]}
    config = transformers.VitDetConfig(**(vitdet.SIZES | chosen | blocks | relative))
    return Case(path, "VitDetModel", config, pixels(rng, path, 3, *config.image_size), "Drawn at random.", store(rng))


def matting(rng: Random, path: str) -> Case:
    maps = {"convstream_hidden_sizes": [rng.randint(2, 9) for _ in range(3)], "fusion_hidden_sizes": [rng.randint(2, 9) for _ in range(4)]}
    config = vitdet.matting(batch_norm_eps=rng.choice(EPSILONS), **maps)
    return Case(path, "VitMatteForImageMatting", config, pixels(rng, path, 4, 64), "Drawn at random.", store(rng))


def hiera(rng: Random, path: str) -> Case:
    chosen = {"blocks_per_stage": [rng.randint(1, 3) for _ in range(4)], "global_attention_blocks": [2] if rng.random() < 0.5 else []}
    config = sam2.hiera(**(chosen | {"num_attention_heads_per_stage": [1, 2, 2, rng.choice((1, 3))], "mlp_ratio": rng.choice((1.5, 3.0))}))
    if config.global_attention_blocks and config.global_attention_blocks[0] in (sum(config.blocks_per_stage[:stage]) for stage in range(1, 4)):
        config.global_attention_blocks = []
    if rng.random() < 0.5:
        return Case(path, "Sam2HieraDetModel", config, pixels(rng, path, 3, 96), "Drawn at random.", store(rng))
    config = sam2.encoder(config, fpn_hidden_size=4 * rng.randint(1, 6), num_feature_levels=rng.randint(1, 4))
    return Case(path, "Sam2VisionModel", config, pixels(rng, path, 3, 96), "Drawn at random.", store(rng))


def grouping(rng: Random, path: str) -> Case:
    stages, heads, patch = rng.randint(1, 3), rng.choice((1, 2, 3)), rng.choice((4, 8))
    counts = sorted((rng.randint(2, 9) for _ in range(stages)), reverse=True)
    keeps = stages > 1 and rng.random() < 0.5
    vision = {
        "hidden_size": heads * 2 * rng.randint(2, 5),
        "intermediate_size": rng.randint(4, 24),
        "num_attention_heads": heads,
        "depths": [rng.randint(1, 2) for _ in range(stages)],
        "num_group_tokens": counts[:-1] + [0] if keeps else counts,
        "num_output_groups": counts[:-1] + [counts[-2]] if keeps else counts,
        "image_size": patch * rng.randint(3, 7),
        "patch_size": patch,
        "hidden_act": rng.choice(ACTIVATIONS),
        "layer_norm_eps": rng.choice(EPSILONS),
        "assign_eps": rng.choice((1.0, 0.1)),
        "assign_mlp_ratio": [rng.choice((0.5, 1.0)), rng.choice((2.0, 4.0))],
    }
    text = {"hidden_act": rng.choice(ACTIVATIONS), "num_hidden_layers": rng.randint(1, 3)}
    made = {"projection_dim": rng.randint(4, 12), "projection_intermediate_dim": rng.randint(4, 12), "output_segmentation": rng.random() < 0.6}
    config = groupvit.config(text, vision, **made)
    texts = clip_text.texts(tuple(rng.randint(3, 9) for _ in range(rng.randint(1, 4))))
    return Case(path, "GroupViTModel", config, texts | clip_vision.images(config.vision_config, rng.randint(1, 3)), "Drawn at random.", store(rng))


def sam3(prefix: str, rng: Random, path: str) -> Case:
    """Two texts of any length, and images of one size."""
    heads = rng.choice((1, 2, 4))
    side, patch, wide = rng.choice((4, 6, 8)), rng.choice((4, 8)), rng.choice((1, 2))
    width = 16 * heads
    vit = transformers.Sam3ViTConfig(
        hidden_size=wide * 24,
        intermediate_size=rng.randint(9, 40),
        num_hidden_layers=rng.randint(1, 3),
        num_attention_heads=wide * 2,
        image_size=side * patch,
        patch_size=patch,
        pretrain_image_size=patch * rng.randint(1, side),
        window_size=rng.choice((2, 3, 4)),
        global_attn_indexes=[0],
    )
    factors = rng.choice(([4.0, 2.0, 1.0, 0.5], [2.0, 1.0, 0.5], [1.0, 0.5]))
    vision = transformers.Sam3VisionConfig(backbone_config=vit, fpn_hidden_size=width, scale_factors=factors)
    text = {"vocab_size": 99, "hidden_size": 12, "intermediate_size": 18, "num_hidden_layers": rng.randint(1, 3), "num_attention_heads": 3, "max_position_embeddings": 16}

    def layers() -> Changes:
        act = rng.choice(("relu", "gelu"))
        return {"hidden_size": width, "num_attention_heads": heads, "num_layers": rng.randint(1, 3), "intermediate_size": rng.randint(5, 40), "hidden_act": act}

    if prefix == "Sam3":
        text_config = transformers.CLIPTextConfig(**text)
    else:
        text |= {"use_repmixer_blocks": rng.random() < 0.8, "repmixer_kernel_size": rng.choice((1, 3, 7)), "hidden_act": rng.choice(ACTIVATIONS)}
        text_config = transformers.Sam3LiteTextTextConfig(**text)
    config = getattr(transformers, f"{prefix}Config")(
        vision_config=vision,
        text_config=text_config,
        geometry_encoder_config=layers(),
        detr_encoder_config=layers(),
        detr_decoder_config=layers() | {"num_queries": rng.randint(1, 9)},
        mask_decoder_config={"hidden_size": width, "num_attention_heads": heads, "num_upsampling_stages": rng.choice((3, 4))},
    )
    inputs = texts(rng, path, 99, 12, "right")
    batch = len(inputs["input_ids"])
    inputs["pixel_values"] = floats(f"{path}.{rng.random()}", (batch, 3, side * patch, side * patch), -2.0, 2.0)
    return Case(path, f"{prefix}Model", config, inputs, "Drawn at random.", store(rng))


def lite_text(rng: Random, path: str) -> Case:
    """Texts shorter and longer than the table of positions."""
    heads, vocab_size = rng.choice((1, 2, 3)), rng.randint(30, 200)
    config = transformers.Sam3LiteTextTextConfig(
        vocab_size=vocab_size,
        hidden_size=heads * rng.randint(2, 8),
        intermediate_size=rng.randint(5, 40),
        projection_dim=rng.randint(4, 20),
        num_hidden_layers=rng.randint(1, 5),
        num_attention_heads=heads,
        max_position_embeddings=rng.randint(2, 30),
        hidden_act=rng.choice(ACTIVATIONS),
        layer_norm_eps=rng.choice(EPSILONS),
        use_repmixer_blocks=rng.random() < 0.8,
        repmixer_kernel_size=rng.choice((1, 3, 5, 11)),
    )
    inputs = texts(rng, path, vocab_size, 30, rng.choice(("right", "left")))
    return Case(path, "Sam3LiteTextTextModel", config, inputs, "Drawn at random.", store(rng))


DRAWN = {
    "sam3": partial(sam3, "Sam3"),
    "sam3_lite_text": partial(sam3, "Sam3LiteText"),
    "sam3_lite_text_text_model": lite_text,
    "groupvit": grouping,
    "maskformer": queries,
    "vitdet": plain_backbone,
    "vitmatte": matting,
    "sam2_vision_model": hiera,
    "sam": partial(sam, "Sam"),
    "sam_hq": partial(sam, "SamHQ"),
    "eomt": partial(eomt, "Eomt"),
    "eomt_dinov3": partial(eomt, "EomtDinov3"),
    "videomt": frames,
    "clipseg": clip_decoder,
    "owlvit": partial(open_vocabulary, "OwlViT"),
    "owlv2": partial(open_vocabulary, "Owlv2"),
    "mask2former": masked_attention,
}
