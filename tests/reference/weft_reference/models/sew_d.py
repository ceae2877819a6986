"""SEW-D: SEW with disentangled attention, whose positions have buckets or none and projections of their own or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import SEWDConfig

from weft_reference import stores, waves
from weft_reference.cases import Case
from weft_reference.models.sew import LAYERS
from weft_reference.models.wav2vec2 import SMALL

NEAR = {"max_position_embeddings": 16, "position_buckets": 6}
MODELS = ROOTS = ("sew-d",)


def case(name: str, head: str, notes: str, masked: bool = True, store: Any = None, **changes: Any) -> Case:
    config = SEWDConfig(**(SMALL | NEAR | changes))
    inputs = waves.batch(f"sew-d.{name}", (700, 523), masked)
    return Case(f"sew-d/{name}", f"SEWD{head}", config, inputs, notes, store)


def goldens() -> Iterator[Case]:
    yield case("base", "Model", "The base model, one waveform padded.")
    yield case("base-layer-norm", "Model", "Every convolution normalised; other epsilons.", feature_layer_norm_eps=1e-3, **LAYERS)
    yield case("base-same-width", "Model", "Features as wide as hidden states.", conv_dim=[8, 12, 16])
    yield case("ctc", "ForCTC", "Scores of characters.")
    yield case("ctc-no-mask", "ForCTC", "No attention_mask.", masked=False)
    yield case("ctc-three", "ForCTC", "Three frames become one; odd kernel.", squeeze_factor=3, num_conv_pos_embeddings=5)
    yield case("ctc-own", "ForCTC", "Projections of positions of their own, no norm.", share_att_key=False, norm_rel_ebd="none")
    yield case("ctc-c2p", "ForCTC", "One term, no buckets.", pos_att_type=["c2p"], position_buckets=-1)
    yield case("classes", "ForSequenceClassification", "Classes of the sound.")
    yield case("file", "ForCTC", "model.safetensors as save_pretrained writes it.", store=stores.whole)
