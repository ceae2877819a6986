"""mT5, UMT5 and Switch Transformers: every head, padding on either side, texts beyond the last bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference.cases import Case, Inputs
from weft_reference.inputs import integers
from weft_reference.models import t5
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_to_text_goldens

TINY: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 24,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 10,
    "decoder_start_token_id": 0,
}


MODELS = ("mt5", "umt5", "switch_transformers")


def goldens() -> Iterator[Case | TaskCase]:
    for model, prefix in (("mt5", "MT5"), ("umt5", "UMT5")):
        yield from kin(model, prefix)
    yield from switch_transformers()


def switch_transformers() -> Iterator[Case | TaskCase]:
    """Of two experts one has more than six tokens of the encoder's text, and none of the decoder's, whose steps see one each."""
    tiny = TINY | {"num_layers": 4, "num_sparse_encoder_layers": 2, "num_experts": 2, "expert_capacity": 6}
    writer = "SwitchTransformersForConditionalGeneration"

    def config(**changes: Any) -> transformers.SwitchTransformersConfig:
        return transformers.SwitchTransformersConfig(**(tiny | changes))

    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        path = f"switch_transformers/{name}"
        return Case(path, "SwitchTransformers" + suffix, config(**changes), inputs, notes)

    suffix = "ForConditionalGeneration"
    both = t5.encoder_text() | t5.decoder_text()
    long = t5.encoder_text("left") | t5.decoder_text((23, 17), "right")
    yield case("base", "Model", "Both texts are beyond what experts take; padding counts.", long, num_experts=4, expert_capacity=3)
    yield case("conditional-generation", suffix, "Tokens beyond an expert's capacity.", both)
    yield case("all-sparse", suffix, "Every layer of the encoder, none of the decoder.", both, num_sparse_encoder_layers=4, num_sparse_decoder_layers=0)
    more = {"num_layers": 3, "num_sparse_encoder_layers": 1, "num_experts": 5, "num_decoder_layers": None}
    yield case("router-bias", suffix, "Routers with biases; every third layer.", both, router_bias=True, dense_act_fn="gelu", **more)
    yield case("left-padding", suffix, "Padding on the left of both texts.", t5.encoder_text("left") | t5.decoder_text((6, 4), "left"))
    yield case("encoder", "EncoderModel", "The encoder alone.", t5.encoder_text(), router_bias=True)
    yield from text_to_text_goldens("switch_transformers", writer, config, num_layers=4)


def kin(model: str, prefix: str) -> Iterator[Case]:
    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        config = getattr(transformers, f"{prefix}Config")(**(TINY | changes))
        return Case(f"{model}/{name}", prefix + suffix, config, inputs, notes)

    writer = "ForConditionalGeneration"
    both = t5.encoder_text() | t5.decoder_text()
    yield case("base", "Model", "Text of two lengths; distances go beyond the last bucket.", both)
    yield case("conditional-generation", writer, "Gated feed-forward layers.", both)
    yield case("relu", writer, "Feed-forward layers without a gate.", both, feed_forward_proj="relu")
    left = t5.encoder_text("left") | t5.decoder_text((6, 4), "left")
    yield case("left-padding", writer, "Padding on the left of both texts.", left)
    yield case("encoder", "EncoderModel", "The encoder alone.", t5.encoder_text())
    yield case("token-classification", "ForTokenClassification", "Three classes.", t5.encoder_text(), num_labels=3)
    yield case("question-answering", "ForQuestionAnswering", "The decoder reads the text too.", t5.encoder_text())
    ended = t5.encoder_text(lengths=(11, 8))
    ids = ended["input_ids"]
    ids[ids == 1] = 2
    ids[0, 10], ids[1, 7] = 1, 1
    yield case("sequence-classification", "ForSequenceClassification", "The last end token's state.", ended, num_labels=3)
    long = {"input_ids": integers("long", (2, 40), 5, 40), "decoder_input_ids": integers("long.decoder", (2, 30), 5, 40)}
    yield case("long", writer, "Texts longer than the longest distance, without masks.", long)
