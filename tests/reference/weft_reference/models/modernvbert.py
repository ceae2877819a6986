"""ModernVBERT and UltraVBERT: a ModernBERT or an UltraBERT with images in the places of tokens; ColModernVBERT, whose
tokens each have an embedding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from transformers import ColModernVBertConfig, ModernVBertConfig, UltraVBertConfig

from weft_reference import stores
from weft_reference.cases import Case, Store
from weft_reference.inputs import floats, text_batch
from weft_reference.models.llava import IMAGE, texts
from weft_reference.models.vision_language.family import SIGLIP, Changes, patches, spread

MODELS = ROOTS = ("modernvbert", "colmodernvbert", "ultravbert")
TEXT: Changes = {
    "vocab_size": 99,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "max_position_embeddings": 96,
    "local_attention": 6,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
}


ULTRABERT: Changes = {
    "model_type": "ultrabert",
    "vocab_size": 99,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "max_position_embeddings": 96,
    "sliding_window": 4,
    "prediction_head_size": 12,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def config(text: Changes | None = None, vision: Changes | None = None, **changes: Any) -> ModernVBertConfig:
    return ModernVBertConfig(
        text_config={"model_type": "modernbert"} | TEXT | (text or {}),
        vision_config=SIGLIP | (vision or {}),
        **({"image_token_id": IMAGE, "pixel_shuffle_factor": 2} | changes),
    )


def case(
    name: str,
    head: str,
    notes: str,
    places: list[list[int]],
    padding: str = "right",
    store: Store | None = None,
    **changes: Any,
) -> Case:
    """Lists of images of each text, padded by images of zeros."""
    chosen = config(**changes)
    vision, counts = chosen.vision_config, [len(row) for row in places]
    features = [patches(chosen) // chosen.pixel_shuffle_factor**2] * sum(counts)
    inputs = texts(spread(places, features), features, padding)
    shape = (len(counts), max(counts), vision.num_channels, vision.image_size, vision.image_size)
    pixels = floats(f"pixels.{name}", shape, -2.0, 2.0)
    for row, count in enumerate(counts):
        pixels[row, count:] = 0.0
    return Case(f"modernvbert/{name}", f"ModernVBert{head}", chosen, inputs | {"pixel_values": pixels}, notes, store)


def ultra(case: Case, path: str, **text: Any) -> Case:
    """The same texts and images for UltraVBERT."""
    fields = case.config.to_dict()
    kept = {
        name: fields[name]
        for name in (
            "vision_config",
            "image_token_id",
            "pixel_shuffle_factor",
            "classifier_pooling",
            "tie_word_embeddings",
        )
    }
    config = UltraVBertConfig(text_config=ULTRABERT | text, num_labels=case.config.num_labels, **kept)
    return replace(case, path=path, model_class=case.model_class.replace("ModernVBert", "UltraVBert"), config=config)


def cases() -> Iterator[Case]:
    head = "ForMaskedLM"
    yield case("base", "Model", "Two texts with an image each.", [[2], [1]])
    yield case("masked-lm", head, "Two texts with an image each.", [[2], [1]])
    alone = text_batch(IMAGE, (7, 4), "right", key="modernvbert")
    del alone["token_type_ids"]
    yield Case("modernvbert/text-alone", f"ModernVBert{head}", config(), alone, "Two texts without images, one padded.")
    yield case(
        "two-images",
        head,
        "Two images in the first text, one in the second, padded on the left.",
        [[1, 4], [2]],
        "left",
    )
    plain = {
        "decoder_bias": False,
        "classifier_bias": True,
        "norm_bias": True,
        "attention_bias": True,
        "mlp_bias": True,
    }
    yield case("tied", head, "Scores of tokens share the table of embeddings.", [[2], [1]], tie_word_embeddings=True)
    yield case(
        "biases",
        head,
        "Biases everywhere but in scores of tokens; every image is a token.",
        [[2], [1]],
        text=plain,
        pixel_shuffle_factor=4,
    )
    yield case("sequence-classification", "ForSequenceClassification", "The first token.", [[1, 4], [2]], num_labels=3)
    yield case(
        "mean",
        "ForSequenceClassification",
        "The mean of tokens.",
        [[1, 4], [2]],
        num_labels=3,
        classifier_pooling="mean",
    )
    yield case("token-classification", "ForTokenClassification", "A class for each token.", [[2], [1]], num_labels=3)
    used = {"vision_use_head": True}
    yield case(
        "file",
        head,
        "model.safetensors as save_pretrained writes it; the vision model has a head.",
        [[2], [1]],
        store=stores.whole,
        vision=used,
    )


def late(case: Case, path: str) -> Case:
    """The same texts and images for late interaction."""
    config = ColModernVBertConfig(vlm_config=case.config.to_dict(), embedding_dim=10)
    return replace(
        case, path=path, model_class="ColModernVBertForRetrieval", config=config, without=("image_hidden_states",)
    )


def goldens() -> Iterator[Case]:
    for made in cases():
        yield made
        name = made.path.removeprefix("modernvbert/")
        if name in ("masked-lm", "text-alone", "two-images", "biases", "file"):
            yield late(made, f"colmodernvbert/{name.replace('masked-lm', 'base')}")
        if name != "biases":
            yield ultra(made, f"ultravbert/{name}")
    biases = {
        "attention_bias": True,
        "mlp_bias": True,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    }
    masked = case("masked-lm", "ForMaskedLM", "Biases of the text model, another order of its layers.", [[2], [1]])
    yield ultra(masked, "ultravbert/biases", **biases)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers and heads, windows and squares."""
    heads, towers = rng.choice((1, 2, 4)), rng.choice((1, 2, 4))
    text = {
        "num_attention_heads": heads,
        "hidden_size": heads * 8,
        "num_hidden_layers": rng.randint(1, 5),
        "local_attention": rng.choice((4, 8)),
        "global_attn_every_n_layers": rng.choice((1, 2, 3)),
    }
    vision = {"num_attention_heads": towers, "hidden_size": towers * 6, "num_hidden_layers": rng.randint(1, 3)}
    changes = {
        "text": text,
        "vision": vision,
        "pixel_shuffle_factor": rng.choice((1, 2, 4)),
        "tie_word_embeddings": rng.random() < 0.5,
    }
    head = rng.choice(("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"))
    drawn = case(
        "random", head, "Drawn at random.", [[1], [0], [2, 3]][: rng.randint(1, 3)], "right", stores.whole, **changes
    )
    return replace(drawn, path=path)


DRAWN = {"modernvbert": random_case, "colmodernvbert": lambda rng, path: late(random_case(rng, path), path)}


def random_ultra(rng: Random, path: str) -> Case:
    heads = rng.choice((1, 2, 4))
    text = {
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": 8,
        "hidden_size": heads * 8,
        "num_hidden_layers": rng.randint(1, 5),
        "sliding_window": rng.choice((2, 4)),
    }
    return ultra(random_case(rng, path), path, **text)


DRAWN["ultravbert"] = random_ultra
