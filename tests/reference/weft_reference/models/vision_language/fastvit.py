"""FastVLM: images through timm's FastViT, before Qwen2."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

from transformers import LlavaImageProcessorPil, LlavaProcessor, PreTrainedConfig

from weft_reference import timm_networks
from weft_reference.inputs import floats
from weft_reference.models.llava import IMAGE
from weft_reference.models.vision_language.family import Changes, Family, Images
from weft_reference.tasks import Call
from weft_reference.vision_tasks import VisionTaskCase
from weft_reference.vision_tasks.llava import TEMPLATE, TOKEN, answers, tokenizer, vocab_size

# Rows and columns of pixels that become one place of the map.
STRIDE = 64


def network(architecture: str = "fastvit_mci3", **changes: Any) -> Changes:
    arguments = {
        "inference_mode": True,
        "layers": [1, 2, 1, 1, 2],
        "embed_dims": [4, 8, 8, 32, 64],
        "mlp_ratios": [2, 1, 1.5, 1, 0.5],
    } | changes
    width = 2 * arguments["embed_dims"][-1]
    return {
        "model_type": "timm_wrapper",
        "architecture": architecture,
        "do_pooling": True,
        "global_pool": "avg",
        "hidden_size": width,
        "model_args": arguments,
    }


def sized(height: int, width: int) -> Any:
    def made(config: PreTrainedConfig, counts: list[int], key: str) -> Images:
        timm_networks.load()
        images = sum(counts)
        pixels = floats(f"pixels.{key}", (images, 3, height, width), -2.0, 2.0)
        return Images({"pixel_values": pixels}, [-(-height // STRIDE) * -(-width // STRIDE)] * images)

    return made


def vary(rng: Random, _: PreTrainedConfig) -> Changes:
    changes = {
        "layers": [rng.randint(1, 2) for _ in range(5)],
        "embed_dims": [rng.choice((2, 4)), 8, rng.choice((8, 16)), 32, rng.choice((32, 64, 96))],
        "mlp_ratios": [rng.choice((0.5, 1, 1.5, 2)) for _ in range(5)],
    }
    return {
        "vision": network(rng.choice(("fastvit_mci3", "fastvit_mci4.apple_mclip2_dfndr2b")), **changes),
        "projector_hidden_act": rng.choice(("gelu", "relu")),
        "multimodal_projector_bias": rng.random() < 0.5,
    }


def tasks(family: Family) -> Iterator[VisionTaskCase]:
    timm_networks.load()
    text = {"vocab_size": vocab_size(), "max_position_embeddings": 200}
    config = family.config(text=text, image_token_index=vocab_size() - 1)
    edge = 2 * STRIDE
    words = tokenizer(config.text_config.max_position_embeddings)
    words.model_input_names = ["input_ids", "attention_mask"]
    processor = LlavaProcessor(
        image_processor=LlavaImageProcessorPil(size={"shortest_edge": edge}, crop_size={"height": edge, "width": edge}),
        tokenizer=words,
        patch_size=STRIDE,
        vision_feature_select_strategy="full",
        chat_template=TEMPLATE,
        num_additional_image_tokens=0,
    )
    short = {"max_new_tokens": 6}
    question = [{"type": "text", "text": "What is it?"}, {"type": "image", "path": "tall.png"}]
    yield VisionTaskCase(
        "fast_vlm/tasks/image-text-to-text",
        "image-text-to-text",
        "FastVlmForConditionalGeneration",
        config,
        processor,
        (
            Call({"images": "rgb.png", "text": f"user : {TOKEN} What is this? assistant :"}, short),
            Call({"images": ["tall.png", "wide.png"], "text": f"{TOKEN} and {TOKEN} are cloth"}, short),
            Call([{"role": "user", "content": question}], short | {"return_full_text": False}),
            Call("the shuttle carries the weft", short),
        ),
        "One picture, two in a text, a chat, a text without pictures.",
        answers=partial(answers, processor=processor),
    )


FASTVIT = (
    Family(
        "fast_vlm",
        "FastVlm",
        {"model_type": "qwen2"},
        network(),
        {"image_token_index": IMAGE},
        sized(128, 128),
        {
            "no-biases": (
                "No biases in the projector, another activation function; scores share the table of embeddings.",
                {
                    "multimodal_projector_bias": False,
                    "projector_hidden_act": "relu",
                    "tie_word_embeddings": True,
                    "text": {"tie_word_embeddings": True},
                },
            ),
            "mci4": ("The larger network's name.", {"vision": network("fastvit_mci4", layers=[1, 1, 1, 1, 1])}),
            "wider": (
                "Widths that grow in every stage.",
                {"vision": network(embed_dims=[4, 8, 16, 32, 96])},
            ),
        },
        tasks,
        vary,
        without=("image_hidden_states",),
    ),
)
