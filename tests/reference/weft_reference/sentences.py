"""Sentence-embedding goldens: what `sentence-transformers` makes of a tiny checkpoint, and of a real one."""

from __future__ import annotations

import importlib.util
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from weft_reference.cases import ruled_model, versions
from weft_reference.files import Files, folder_files, to_json
from weft_reference.tasks import Call, record, task_json

TASK = "sentence-embedding"
# A checkpoint's weights come from the rule; the read-me is about publishing.
SETTINGS = "config_sentence_transformers.json"
NOT_KEPT = ("model.safetensors", "README.md")
PUBLISHED_FLAGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


@dataclass(frozen=True)
class SentenceCase:
    """`layout`: files as this release saves them, or as most published checkpoints have them."""

    path: str
    model_class: str
    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerBase
    calls: tuple[Call, ...]
    pooling: tuple[str, ...] = ("mean",)
    normalize: bool = True
    max_seq_length: int | None = None
    layout: Literal["current", "published"] = "published"
    prompts: Mapping[str, str] = field(default_factory=dict)
    include_prompt: bool = True
    notes: str = ""

    def make(self) -> Files:
        with tempfile.TemporaryDirectory() as temporary:
            base, folder = Path(temporary) / "base", Path(temporary) / "saved"
            model, parameters = ruled_model(self.model_class, self.config)
            model.save_pretrained(base)
            self.tokenizer.save_pretrained(base)
            self.assemble(base).save_pretrained(str(folder), create_model_card=False)
            if self.layout == "published":
                self.as_published(folder)
            encoder = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
            calls = [record(call, lambda inputs, kw: encoder.encode(inputs, **kw)) for call in self.calls]
            files = {name: data for name, data in folder_files(folder).items() if name not in NOT_KEPT}
        files[SETTINGS] = re.sub(rb'\+\w+"', b'"', files[SETTINGS])  # the same on machines with another build of torch
        files["task.json"] = task_json(TASK, self.model_class, calls, parameters, self.notes)
        return {f"{self.path}/{name}": data for name, data in files.items()}

    def assemble(self, base: Path) -> SentenceTransformer:
        transformer = Transformer(str(base), model_kwargs={"dtype": torch.float32})
        if self.max_seq_length is not None:
            transformer.max_seq_length = self.max_seq_length
        pooling = Pooling(self.config.hidden_size, pooling_mode=self.pooling, include_prompt=self.include_prompt)
        modules = [transformer, pooling] + ([Normalize()] if self.normalize else [])
        return SentenceTransformer(modules=modules, device="cpu", prompts=dict(self.prompts))

    def as_published(self, folder: Path) -> None:
        """Rewrites the module files as `sentence-transformers` 2 to 4 did: they alone limit the length."""
        self.tokenizer.save_pretrained(folder)
        modules = json.loads((folder / "modules.json").read_text())
        for module in modules:
            module["type"] = "sentence_transformers.models." + module["type"].rsplit(".", 1)[-1]
        flags = {flag: mode in self.pooling for mode, flag in PUBLISHED_FLAGS.items()}
        pooling = (
            {"word_embedding_dimension": self.config.hidden_size} | flags | {"include_prompt": self.include_prompt}
        )
        encoder = {"max_seq_length": self.max_seq_length, "do_lower_case": False}
        for name, value in (
            ("modules.json", modules),
            ("1_Pooling/config.json", pooling),
            ("sentence_bert_config.json", encoder),
        ):
            (folder / name).write_text(json.dumps(value, indent=2) + "\n")
        (folder / "2_Normalize" / "config.json").unlink(missing_ok=True)


@dataclass(frozen=True)
class PackagedCheckpoint:
    """Embeddings by a real checkpoint that a Python package carries, in one JSON file."""

    path: str
    distribution: str
    package: str
    folder: str
    sentences: tuple[str, ...]
    tolerance: float

    def make(self) -> Files:
        spec = importlib.util.find_spec(self.package)
        if spec is None or spec.origin is None:
            raise FileNotFoundError(f"{self.distribution} is not installed; it is in requirements.txt")
        encoder = SentenceTransformer(str(Path(spec.origin).parent / self.folder), device="cpu")
        embeddings = encoder.encode(list(self.sentences))
        golden: dict[str, Any] = {
            "format": 1,
            "task": TASK,
            "package": {"name": self.distribution, "version": version(self.distribution)},
            "reference": versions() | {"sentence_transformers": version("sentence-transformers")},
            "tolerance": self.tolerance,
            "sentences": list(self.sentences),
            "embeddings": embeddings,
        }
        return {self.path: to_json(golden)}
