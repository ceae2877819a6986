"""How an architecture is converted, and the metadata that many share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from weft_reference.gguf_converters.changes import Array, Change
from weft_reference.gguf_converters.splits import Split

SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
}


MLP = {"feed_forward_length": "intermediate_size"}


GROUPED = {"attention.head_count_kv": "num_key_value_heads"}


RMS = {"attention.layer_norm_rms_epsilon": "rms_norm_eps"}


NORM = {"attention.layer_norm_epsilon": "layer_norm_eps"}


HEAD = {"attention.key_length": "head_dim", "attention.value_length": "head_dim"}


LLAMA = SIZES | MLP | GROUPED | RMS


EXPERTS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}


@dataclass(frozen=True)
class Converter:
    """How the models of an architecture are converted: `keys` of the metadata by fields of the configuration, with dots where they
    are in an object of it."""

    name: str
    keys: Mapping[str, str]
    changes: Mapping[str, Change] = field(default_factory=dict)
    rope: bool = True
    fixed: Mapping[str, Any] = field(default_factory=dict)
    made: Callable[[Any], dict[str, Any]] = lambda _config: {}
    """What the converter computes of the configuration."""
    prefix: str = ""
    """What it takes off names before it looks them up."""
    dropped: tuple[str, ...] = ()
    """The tensors that it leaves out."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """What pieces of names, by patterns, it calls otherwise before it looks them up."""
    splits: Callable[[Any], Mapping[str, Split]] = lambda _config: {}
    """What of a configuration's tensors becomes several, or has a name that llama.cpp's tables lack."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """What of each layer is a number, by patterns of names, which becomes a list of the metadata."""
    names: str = ""
    """The architecture by whose table its names are looked up, where the package `gguf` does not know its own yet."""
    extra: Callable[[Any], Mapping[str, Array]] = lambda _config: {}
    """Tensors that it computes of the configuration."""

    def metadata(self, config: Any) -> dict[str, Any]:
        """The metadata of a configuration, by keys without the architecture's name."""
        found = {key: reduce(lambda c, part: getattr(c, part, None), name.split("."), config) for key, name in self.keys.items()}
        found = {key: value for key, value in found.items() if value is not None}
        found |= dict(self.fixed) | self.made(config)
        if self.rope:
            rope = config.rope_parameters
            full = rope.get("full_attention", rope)
            found["rope.freq_base"] = float(full["rope_theta"])
            width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
            found["rope.dimension_count"] = int(width * (full.get("partial_rotary_factor") or 1.0))
            if full.get("rope_type") == "yarn":
                found["rope.scaling.type"] = "yarn"
                found["rope.scaling.factor"] = float(full["factor"])
                found["rope.scaling.original_context_length"] = full["original_max_position_embeddings"]
                for name in ("beta_fast", "beta_slow"):
                    if full.get(name):
                        found[f"rope.scaling.yarn_{name}"] = float(full[name])
            if "sliding_attention" in rope:
                found["rope.freq_base_swa"] = float(rope["sliding_attention"]["rope_theta"])
        return found


WINDOW = {"attention.sliding_window": "sliding_window"}


USED = {"expert_used_count": "num_experts_per_tok"}


ROUTED = USED | {
    "expert_count": "n_routed_experts",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
}


GRANITE = {
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "attention.scale": "attention_multiplier",
    "logit_scale": "logits_scaling",
}
