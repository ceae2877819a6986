"""VITS: durations by a flow and by convolutions, noise told from outside, several voices, a task by a seed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers

from weft_reference.cases import Case, ruled_model, save_config
from weft_reference.files import Files, folder_files
from weft_reference.inputs import floats, text_batch
from weft_reference.tasks import Call, record, task_json

SMALL: dict[str, Any] = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "window_size": 3,
    "ffn_dim": 20,
    "flow_size": 8,
    "spectrogram_bins": 9,
    "upsample_initial_channel": 12,
    "upsample_rates": [3, 2],
    "upsample_kernel_sizes": [5, 4],
    "resblock_kernel_sizes": [3, 5],
    "resblock_dilation_sizes": [[1, 3], [1, 2]],
    "depth_separable_num_layers": 2,
    "duration_predictor_flow_bins": 5,
    "duration_predictor_num_flows": 3,
    "duration_predictor_filter_channels": 10,
    "prior_encoder_num_flows": 2,
    "prior_encoder_num_wavenet_layers": 3,
    "posterior_encoder_num_wavenet_layers": 1,
    "wavenet_kernel_size": 3,
}


def told(key: str) -> AbstractContextManager[Any]:
    """The reference with noise by these keys in place of what it draws."""

    def randn(*shape: int) -> torch.Tensor:
        return torch.from_numpy(floats(f"{key}.durations", shape))

    def randn_like(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(floats(f"{key}.latents", tuple(x.shape)))

    stack = ExitStack()
    stack.enter_context(mock.patch.object(torch, "randn", randn))
    stack.enter_context(mock.patch.object(torch, "randn_like", randn_like))
    return stack


def case(name: str, notes: str, speaker: int | None = None, masked: bool = True, **changes: Any) -> Case:
    config = transformers.VitsConfig(**(SMALL | changes))
    text = text_batch(config.vocab_size, (11, 7) if masked else (9, 9), "right", key=name)
    given = {name: text[name] for name in ("input_ids", "attention_mask")}
    if not masked:
        del given["attention_mask"]
    if speaker is not None:
        given["speaker_id"] = np.array([speaker])
    model, _ = ruled_model("VitsModel", config)
    with told(name), torch.no_grad():
        made = model(**{key: torch.from_numpy(value) for key, value in given.items()})
    frames = int(made.sequence_lengths.max()) // int(np.prod(config.upsample_rates))
    rows, length = given["input_ids"].shape
    own = {"frame_positions": np.arange(frames)}
    own["latent_noise"] = floats(f"{name}.latents", (rows, config.flow_size, frames))
    if config.use_stochastic_duration_prediction:
        own["duration_noise"] = floats(f"{name}.durations", (rows, 2, length))
    return Case(f"vits/{name}", "VitsModel", config, given, notes, own=own, within=lambda: told(name))


LETTERS = ["_", *"abcdefghijklmnopqrstuvwxyz", " ", "'", "<unk>"]


def tokenizer() -> transformers.VitsTokenizer:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "vocab.json"
        path.write_text(json.dumps({letter: index for index, letter in enumerate(LETTERS)}))
        return transformers.VitsTokenizer(str(path), phonemize=False, pad_token="_", language="eng")


@dataclass(frozen=True)
class SpeechCase:
    """What the pipeline makes of texts, each call from a seed of its own."""

    path: str
    config: transformers.VitsConfig
    calls: tuple[Call, ...]
    notes: str

    def make(self) -> Files:
        model, parameters = ruled_model("VitsModel", self.config)
        words = tokenizer()
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            save_config(model, folder)
            words.save_pretrained(folder)
            files = folder_files(folder)
        made = transformers.pipeline("text-to-audio", model=model, tokenizer=words, device="cpu", dtype=torch.float32)

        def answer(text: Any, given: dict[str, Any]) -> Any:
            torch.manual_seed(given.pop("seed"))
            spoken = made(text, **given)
            return {"audio": spoken["audio"].tolist(), "sampling_rate": spoken["sampling_rate"]}

        calls = [record(call, answer) for call in self.calls]
        files["task.json"] = task_json("text-to-audio", "VitsModel", calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}


def goldens() -> Iterator[Any]:
    yield from cases()
    calls = (Call("A warp thread!", {"seed": 5}), Call("Who wove it?", {"seed": 6}), Call("ab", {"seed": 7}))
    notes = "Upper case and punctuation, noise from seeds."
    yield SpeechCase("vits/tasks/text-to-audio", transformers.VitsConfig(**SMALL), calls, notes)


def cases() -> Iterator[Case]:
    yield case("speech", "Two texts, the second shorter, durations by the flow.")
    rates = {"noise_scale": 0.2, "noise_scale_duration": 0.4, "speaking_rate": 0.7}
    yield case("speech-no-mask", "Without a mask, other rates of noise and of speech.", masked=False, **rates)
    yield case("convolutions", "Durations by convolutions.", use_stochastic_duration_prediction=False)
    voices = {"num_speakers": 4, "speaker_embedding_size": 6}
    yield case("voices", "Several voices.", 2, **voices)
    yield case("voices-convolutions", "Several voices.", 1, use_stochastic_duration_prediction=False, **voices)
    other = {"use_bias": False, "ffn_kernel_size": 2, "wavenet_dilation_rate": 2, "window_size": 12, "hidden_act": "gelu"}
    yield case("dilated", "Dilated convolutions, a window above the text, no biases.", **other)
