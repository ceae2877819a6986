"""VideoLLaMA 3: images of any size as one list of patches, whose squares have a size of their own."""

from __future__ import annotations

import numpy as np
from transformers import PreTrainedConfig

from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images


def sized(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
    """Images of several sizes as one list of patches: squares of one, two, three and four, the second of two frames."""
    vision = config.vision_config
    sizes = [(2, 1, 3, 4)[index % 4] for index in range(sum(counts))]
    grids = [[1 + index % 2, size * (1 + index % 3), size * (2 + index % 2)] for index, size in enumerate(sizes)]
    patches = sum(frames * rows * columns for frames, rows, columns in grids)
    pixels = floats(f"pixels.{key}", (patches, vision.num_channels * vision.patch_size**2), -2.0, 2.0)
    features = [frames * rows * columns // size**2 for (frames, rows, columns), size in zip(grids, sizes, strict=True)]
    inputs = {"pixel_values": pixels, "image_grid_thw": np.array(grids, np.int64), "image_merge_sizes": np.array(sizes, np.int64)}
    return Images(inputs, features)


TOWER: Changes = {"hidden_size": 16, "intermediate_size": 18, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 4}

MERGED = (
    Family(
        "video_llama_3",
        "VideoLlama3",
        {"model_type": "qwen2"},
        TOWER,
        {"image_token_id": IMAGE},
        sized,
        {
            "tied": ("The scores of tokens are of the table of embeddings; another function and base.", {"tie_word_embeddings": True, "vision": {"hidden_act": "relu", "rope_parameters": {"rope_type": "axial", "rope_theta": 100.0}}}),
        },
    ),
)
