"""ZoeDepth: one head of metric depth and two, both kinds of bins, images of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import BeitConfig, ZoeDepthConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats

BEIT = {
    "hidden_size": 12,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 16,
    "image_size": 32,
    "patch_size": 8,
    "use_relative_position_bias": True,
    "reshape_hidden_states": False,
    "out_indices": [1, 2, 3, 4],
}
TWO = {
    "bin_configurations": [
        {"name": "nyu", "n_bins": 8, "min_depth": 0.001, "max_depth": 10.0},
        {"name": "kitti", "n_bins": 6, "min_depth": 0.001, "max_depth": 80.0},
    ],
    "num_patch_transformer_layers": 4,
    "patch_transformer_hidden_size": 128,
    "patch_transformer_intermediate_size": 12,
    "patch_transformer_num_attention_heads": 4,
}


def config(beit: dict[str, Any] | None = None, **changes: Any) -> ZoeDepthConfig:
    tiny = {
        "neck_hidden_sizes": [6, 8, 10, 12],
        "fusion_hidden_size": 16,
        "bottleneck_features": 16,
        "num_relative_features": 4,
        "num_attractors": [3, 2, 2, 1],
        "bin_embedding_dim": 6,
        "bin_configurations": [{"n_bins": 7, "min_depth": 0.001, "max_depth": 10.0}],
    }
    return ZoeDepthConfig(backbone_config=BeitConfig(**(BEIT | (beit or {}))), **(tiny | changes))


def case(name: str, notes: str, size: tuple[int, int], store: Store | None = None, **changes: Any) -> Case:
    made, pixels = config(**changes), floats(f"pixels.{name}", (2, 3, *size), -2.0, 2.0)
    return Case(f"zoedepth/{name}", "ZoeDepthForDepthEstimation", made, {"pixel_values": pixels}, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "One head; images of the backbone's size.", (32, 32))
    yield case("normed", "Bins within the range of depths; images of another size.", (40, 24), bin_centers_type="normed", attractor_kind="sum")
    yield case("domains", "Two heads, of which images select one.", (24, 48), **TWO)
    yield case("domains-normed", "Two heads with bins within the range of depths.", (32, 24), bin_centers_type="normed", **TWO)
    plain = {"use_relative_position_bias": False, "use_absolute_position_embeddings": True, "use_mean_pooling": False, "out_indices": [0, 1, 2, 3]}
    yield case("batch-norm", "Batch normalisation; a backbone with positions; a layer that none reads.", (32, 40), beit=plain, use_batch_norm_in_fusion_residual=True)
    yield case("projection", "A convolution before relative depth; biases of all layers.", (32, 32), beit={"use_shared_relative_position_bias": True, "use_relative_position_bias": False}, add_projection=True, fusion_hidden_size=256, bottleneck_features=256)
    yield case("file", "The names of published checkpoints.", (32, 32), stores.whole)
    yield case("domains-file", "Two heads, under the names of published checkpoints.", (32, 32), stores.whole, **TWO)
