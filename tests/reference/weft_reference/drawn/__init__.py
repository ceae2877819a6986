"""Checkpoints drawn at random: sizes, heads, padding and options that no golden was written for, model by model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from weft_reference.cases import Case
from weft_reference.drawn import (
    assistants,
    backbones,
    codecs,
    composed,
    decoders,
    dense,
    detectors,
    encoders,
    images_to_images,
    joint,
    long_text,
    newest,
    open_set,
    own,
    pictures,
    segmenters,
    series,
    text_to_text,
    vision_language,
    waveforms,
    younger,
)
from weft_reference.models import (
    audio_language,
    bert,
    codes,
    conformers_younger,
    dia,
    moonshine_streaming,
    seamless,
    speech_encoder_decoder,
    univnet,
)
from weft_reference.models.decoders import DECODERS
from weft_reference.models.encoders.table import ENCODERS

Draw = Callable[[Random, str], Case]

DRAWN: dict[str, Draw] = {
    "bert": bert.random_case,
    **{decoder.model: partial(decoders.random_case, decoder) for decoder in DECODERS},
    **{model: partial(encoders.random_case, model) for model in ENCODERS},
    **assistants.DRAWN,
    **audio_language.DRAWN,
    **backbones.DRAWN,
    **codecs.DRAWN,
    **codes.DRAWN,
    **composed.DRAWN,
    **conformers_younger.DRAWN,
    **dense.DRAWN,
    **detectors.DRAWN,
    **dia.DRAWN,
    **images_to_images.DRAWN,
    **joint.DRAWN,
    **long_text.DRAWN,
    **moonshine_streaming.DRAWN,
    **newest.DRAWN,
    **open_set.DRAWN,
    **own.DRAWN,
    **pictures.DRAWN,
    **seamless.DRAWN,
    **segmenters.DRAWN,
    **series.DRAWN,
    **speech_encoder_decoder.DRAWN,
    **text_to_text.DRAWN,
    **univnet.DRAWN,
    **vision_language.DRAWN,
    **waveforms.DRAWN,
    **younger.DRAWN,
}


def drawn(models: list[str], count: int, seed: int) -> list[tuple[str, Draw, Random]]:
    """Models in a random order, each once before any comes again, with what draws a case of each."""
    order = Random(f"order.{seed}")
    chosen: list[str] = []
    while len(chosen) < count:
        chosen += order.sample(models, len(models))
    return [
        (f"{model}-{seed}-{index:03}", DRAWN[model], Random(f"{model}.{seed}.{index}"))
        for index, model in enumerate(chosen[:count])
    ]
