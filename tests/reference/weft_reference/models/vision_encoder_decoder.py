"""Vision Encoder Decoder: ViT or DeiT, and BERT, RoBERTa or TrOCR's decoder; TrOCR's decoder alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import transformers

from weft_reference import stores
from weft_reference.cases import Case, Inputs
from weft_reference.inputs import floats
from weft_reference.models import encoder_decoder, t5
from weft_reference.vision_tasks import VisionTaskCase, image_questions

MODELS = ROOTS = ("vision-encoder-decoder", "trocr")

VISION: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 20,
    "image_size": 12,
    "patch_size": 4,
}
TROCR: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 40,
}
PLAIN = {
    "use_learned_position_embeddings": False,
    "layernorm_embedding": False,
    "scale_embedding": True,
    "activation_function": "relu",
    "tie_word_embeddings": False,
}
ENCODERS = {"vit": transformers.ViTConfig, "deit": transformers.DeiTConfig}


def decoder(name: str, **changes: Any) -> transformers.PreTrainedConfig:
    if name == "trocr":
        return transformers.TrOCRConfig(**(TROCR | changes))
    sizes = encoder_decoder.STACK | encoder_decoder.PADDED.get(name, {})
    return encoder_decoder.CLASSES[name](**(sizes | changes))


def config(
    encoder: str = "vit", text: str = "trocr", vision: dict[str, Any] | None = None, **changes: Any
) -> transformers.VisionEncoderDecoderConfig:
    stacks = ENCODERS[encoder](**(VISION | (vision or {}))), decoder(text, **changes)
    ids = {"decoder_start_token_id": 3, "pad_token_id": 0}
    return transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(*stacks, **ids)


def inputs(chosen: transformers.VisionEncoderDecoderConfig, padding: str = "right", key: str = "pixels") -> Inputs:
    vision = chosen.encoder
    images = floats(key, (2, vision.num_channels, vision.image_size, vision.image_size), -2.0, 2.0)
    return {"pixel_values": images} | encoder_decoder.begun(t5.decoder_text((9, 6), padding))


def case(name: str, notes: str, padding: str = "right", store: Any = None, **changes: Any) -> Case:
    chosen = config(**changes)
    path = f"vision-encoder-decoder/{name}"
    return Case(path, "VisionEncoderDecoderModel", chosen, inputs(chosen, padding, name), notes, store)


def alone(name: str, notes: str, padding: str = "right", store: Any = None, **changes: Any) -> Case:
    text = encoder_decoder.begun(t5.decoder_text((9, 6), padding))
    given = {key.removeprefix("decoder_"): value for key, value in text.items()}
    return Case(f"trocr/{name}", "TrOCRForCausalLM", decoder("trocr", **changes), given, notes, store)


def goldens() -> Iterator[Case | VisionTaskCase]:
    yield case("trocr", "ViT and TrOCR's decoder, texts padded on the right.")
    yield case("sinusoidal", "Sinusoidal positions, no norm of embeddings, an output table of its own.", pad_token_id=1, **PLAIN)
    wide = {"hidden_size": 16, "num_attention_heads": 2}
    yield case("projected", "Another width of images, projected for the decoder.", vision=wide)
    own = {"cross_attention_hidden_size": 16}
    yield case("projected-by-layers", "Another width of images, which each layer projects.", vision=wide, **own)
    yield case("deit", "DeiT and BERT, texts padded on the left.", "left", encoder="deit", text="bert")
    yield case("roberta", "ViT and RoBERTa; biases of queries, keys and values left out.", text="roberta", vision={"qkv_bias": False})
    yield case("file", "model.safetensors as written.", store=stores.whole)
    read = config(pad_token_id=0, vocab_size=image_questions.BEGIN)
    processor = transformers.ViTImageProcessorPil(size={"height": 12, "width": 12})
    generation = {"decoder_start_token_id": image_questions.CLS, "eos_token_id": image_questions.SEP, "pad_token_id": image_questions.PAD}
    made = image_questions.tokenizer(40)
    yield image_questions.image_to_text(
        "vision-encoder-decoder", "VisionEncoderDecoderModel", read, processor, made, prompted=False, generation=generation
    )
    yield alone("base", "Texts padded on the right.")
    yield alone("sinusoidal", "Sinusoidal positions, no norm of embeddings, an output table of its own.", **PLAIN)
    yield alone("left-padding", "Texts padded on the left.", "left")
    yield alone("file", "model.safetensors as written.", store=stores.whole)


def random_case(rng: Random, path: str) -> Case:
    """Other widths, layers and heads on either side."""
    heads = rng.choice((1, 2, 4))
    sizes = {"decoder_layers": rng.randint(1, 3), "decoder_attention_heads": heads, "d_model": heads * 8, "vocab_size": 60}
    vision = {"num_attention_heads": (heads := rng.choice((1, 2, 4))), "hidden_size": heads * 8, "num_hidden_layers": rng.randint(1, 3)}
    plain = PLAIN if rng.random() < 0.5 else {}
    changes = {"encoder": rng.choice(tuple(ENCODERS)), "vision": vision} | sizes | plain
    return replace(case("random", "Drawn at random.", store=stores.whole, **changes), path=path)


def random_alone(rng: Random, path: str) -> Case:
    """Other widths, layers and heads of TrOCR's decoder alone."""
    heads = rng.choice((1, 2, 4))
    sizes = {"decoder_layers": rng.randint(1, 3), "decoder_attention_heads": heads, "d_model": heads * 2 * rng.randint(3, 8)}
    sizes |= {"decoder_ffn_dim": rng.randint(8, 60), "vocab_size": rng.randint(40, 200)}
    # Sinusoidal positions are no weights, and the reference loses them as it loads a file.
    plain = PLAIN | {"use_learned_position_embeddings": True} if rng.random() < 0.5 else {}
    changes = plain | sizes
    return replace(alone("random", "Drawn at random.", rng.choice(("right", "left")), stores.whole, **changes), path=path)


DRAWN = {"vision-encoder-decoder": random_case, "trocr": random_alone}
