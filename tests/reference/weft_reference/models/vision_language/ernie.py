"""ERNIE 4.5 VL: experts of texts and of images, and features of two frames of a video together."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE, texts
from weft_reference.models.vision_language.family import Changes, Family, packed, spread
from weft_reference.vision_tasks import VisionTaskCase, ernie

AROUND: Changes = {
    "image_start_token_id": 91,
    "image_end_token_id": 92,
    "video_start_token_id": 93,
    "video_end_token_id": 94,
    "video_token_id": 95,
}
VISUAL = (IMAGE, *AROUND.values())
ROPE: Changes = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
TOWER: Changes = {
    "depth": 2,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_heads": 2,
    "in_channels": 3,
    "patch_size": 4,
    "hidden_act": "quick_gelu",
}


def surrounded(inputs: Inputs) -> Inputs:
    """Ids in which the tokens around an image stand around those of each text, but where it begins with one."""
    ids = np.array(inputs["input_ids"])
    for row in ids:
        images = np.flatnonzero(row == IMAGE)
        if images[0] > 0:
            row[images[0] - 1] = AROUND["image_start_token_id"]
        row[images[-1] + 1] = AROUND["image_end_token_id"]
    return {"input_ids": ids}


def types(inputs: Inputs) -> Inputs:
    """Which tokens are an image's, and which have the experts of images."""
    ids = inputs["input_ids"]
    return {
        "mm_token_type_ids": (ids == IMAGE).astype(np.int64),
        "moe_mm_token_type_ids": np.isin(ids, VISUAL).astype(np.int64),
    }


def video(family: Family) -> Case:
    """An image and a video of four frames in a text, one of two frames in another, which Weft takes in one list."""
    config = family.config()
    grids, features = np.array([[1, 2, 4], [4, 2, 2], [2, 4, 2]], np.int64), [2, 2, 2]
    inputs = texts(spread([[1, 4], [2]], features), features)
    mask, ids = inputs["attention_mask"], np.array(inputs["input_ids"])
    places = [np.flatnonzero(row == IMAGE) for row in ids]
    films = np.zeros_like(ids)
    films[0, places[0][2:]] = films[1, places[1]] = 1
    ids[0, places[0][2] - 1], ids[1, places[1][-1] + 1] = AROUND["video_start_token_id"], AROUND["video_end_token_id"]
    pixels = floats("pixels.video", (int(grids.prod(1).sum()), 3 * config.vision_config.patch_size**2), -2.0, 2.0)
    first = int(grids[0].prod())
    told = {
        "input_ids": np.where(films == 1, AROUND["video_token_id"], ids),
        "pixel_values": pixels[:first],
        "image_grid_thw": grids[:1],
        "pixel_values_videos": pixels[first:],
        "video_grid_thw": grids[1:],
        "mm_token_type_ids": (ids == IMAGE) + films,
        "moe_mm_token_type_ids": np.isin(ids, VISUAL) * (1 + films),
    }
    return Case(
        f"{family.model}/video",
        family.prefix + "ForConditionalGeneration",
        config,
        {"attention_mask": mask},
        "An image and a video of four frames in a text, a video of two frames in another.",
        told={name: value.astype(np.int64) if name.endswith("ids") else value for name, value in told.items()},
        own={"input_ids": ids, "pixel_values": pixels, "image_grid_thw": grids},
        without=family.without,
    )


def typed(family: Family) -> Case:
    """Types of tokens that are given, and are not those of their ids."""
    case = family.case("token-types", "ForConditionalGeneration", "Types of tokens are given: some of images have experts of texts.", [[2], [1]])
    given = dict(case.told)["moe_mm_token_type_ids"].copy()
    # Tokens that are generated have experts of texts.
    given[:, :-3:2] = 1 - given[:, :-3:2]
    told = {"mm_token_type_ids": case.told["mm_token_type_ids"]}
    return Case(**(vars(case) | {"inputs": {**case.inputs, "moe_mm_token_type_ids": given}, "told": told}))


def cases(family: Family) -> Iterator[Case | VisionTaskCase]:
    yield video(family)
    yield typed(family)
    yield from ernie.ernie4_5_vl_moe(family)


def vary(rng: Random, config: PreTrainedConfig) -> Changes:
    """Other splits of the pairs of a head, kinds of layers and experts."""
    text = config.text_config
    pairs = text.hidden_size // text.num_attention_heads // 2
    side = rng.randint(1, (pairs - 1) // 2)
    experts = rng.randint(2, 6)
    heads = rng.choice((1, 2, 4))
    return {
        "text": {
            "rope_parameters": ROPE | {"mrope_section": [side, side, pairs - 2 * side]},
            "moe_num_experts": experts,
            "moe_k": rng.randint(1, experts),
            "moe_intermediate_size": [rng.randint(3, 20), rng.randint(3, 20)],
            "moe_num_shared_experts": rng.randint(0, 2),
            "mlp_layer_types": [*(rng.choice(("dense", "sparse")) for _ in range(text.num_hidden_layers - 1)), "sparse"],
            "use_bias": rng.choice((True, False)),
        },
        "vision": {
            "num_heads": heads,
            "num_attention_heads": heads,
            "hidden_size": heads * rng.choice((8, 12)),
            "depth": rng.randint(1, 3),
            "spatial_merge_size": rng.choice((1, 2)),
        },
    }


ERNIE = (
    Family(
        "ernie4_5_vl_moe",
        "Ernie4_5_VLMoe",
        {
            "hidden_size": 32,
            "rope_parameters": ROPE,
            "num_hidden_layers": 3,
            "moe_num_experts": 4,
            "moe_k": 2,
            "moe_intermediate_size": [12, 6],
        },
        TOWER,
        {"image_token_id": IMAGE} | AROUND,
        packed,
        {
            "biases": ("Biases in the text; every second layer is dense.", {"text": {"use_bias": True, "mlp_layer_types": ["sparse", "dense", "sparse"]}}),
            "no-shared": ("No shared experts; three experts a token.", {"text": {"moe_num_shared_experts": 0, "moe_k": 3}}),
            "one-patch": ("Every patch is a token; every expert is selected.", {"text": {"moe_k": 4}, "vision": {"spatial_merge_size": 1, "hidden_act": "gelu"}}),
            "untied": ("Scores of tokens have a table of their own; every expert is selected.", {"tie_word_embeddings": False, "text": {"moe_k": 4}}),
        },
        tasks=cases,
        vary=vary,
        told=types,
        given=surrounded,
        without=("router_logits", "aux_loss"),
    ),
)
