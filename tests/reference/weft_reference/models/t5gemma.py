"""T5Gemma: two stacks of other sizes, grouped heads, windows shorter than the texts, soft caps, every head, a padded batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import integers
from weft_reference.models import t5
from weft_reference.tasks import TaskCase
from weft_reference.writing import text_to_text_goldens

STACK: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "query_pre_attn_scalar": 12,
    "sliding_window": 4,
    "final_logit_softcapping": 30.0,
    "attn_logit_softcapping": 8.0,
    "max_position_embeddings": 64,
}
WIDER: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_key_value_heads": 4, "head_dim": 6}
WRITER = "T5GemmaForConditionalGeneration"


def config(encoder: dict[str, Any] | None = None, decoder: dict[str, Any] | None = None, **changes: Any) -> Any:
    both = {name: changes.pop(name) for name in ("vocab_size", "num_hidden_layers") if name in changes}
    stacks = {"encoder": STACK | WIDER | both | (encoder or {}), "decoder": STACK | both | (decoder or {})}
    return transformers.T5GemmaConfig(**stacks, vocab_size=both.get("vocab_size", 40), **changes)


def goldens() -> Iterator[Case | TaskCase]:
    both = t5.encoder_text() | t5.decoder_text((9, 9))

    def case(name: str, suffix: str, notes: str, inputs: Inputs, **changes: Any) -> Case:
        return Case(f"t5gemma/{name}", f"T5Gemma{suffix}", config(**changes), inputs, notes)

    generation = "ForConditionalGeneration"
    yield case("base", "Model", "Two lengths; windows are shorter; the stacks are of other sizes.", both)
    yield case("conditional-generation", generation, "Tied scores, soft-capped.", both)
    left = t5.encoder_text("left") | t5.decoder_text((9, 6), "left")
    yield case("left-padding", generation, "Padding on the left of both texts.", left)
    plain = {"attn_logit_softcapping": None, "final_logit_softcapping": None, "attention_bias": True}
    layers = {"layer_types": ["full_attention", "sliding_attention"]}
    untied = {"encoder": plain | layers, "decoder": plain, "tie_word_embeddings": False}
    yield case("untied", generation, "Scores of their own, no soft caps, biases, layers in another order.", both, **untied)
    padded = {name: x for name, x in t5.encoder_text().items() if name != "attention_mask"}
    padded["input_ids"][0, 5:] = 0
    yield case("without-mask", generation, "The encoder masks padding where no mask is given.", padded | t5.decoder_text())
    positions = {"position_ids": integers("positions", (2, 13), 0, 60), "decoder_position_ids": integers("more", (2, 9), 0, 60)}
    yield case("positions", "Model", "Positions as given.", both | positions)
    alone = {"is_encoder_decoder": False}
    yield case("encoder", "EncoderModel", "The encoder alone.", t5.encoder_text(), **alone)
    texts = t5.encoder_text()
    for head in ("sequence", "token"):
        suffix = f"For{head.capitalize()}Classification"
        yield case(f"{head}-classification", suffix, "Three classes by the decoder.", texts, num_labels=3)
        yield case(f"{head}-classification-encoder", suffix, "Three classes by the encoder.", texts, num_labels=3, **alone)
    full = {name: x[:, :9] for name, x in texts.items()}
    yield case("sequence-classification-full", "ForSequenceClassification", "No padding.", full, num_labels=3)
    stored = case("file", generation, "model.safetensors as written.", both)
    yield Case(**{**stored.__dict__, "store": stores.whole})
    yield from text_to_text_goldens("t5gemma", WRITER, config, num_hidden_layers=2)
