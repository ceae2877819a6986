"""Chat templates: what `apply_chat_template` makes of chats, for templates in the styles in use."""

from __future__ import annotations

import datetime
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from transformers import PreTrainedTokenizerFast

from weft_reference.cases import versions
from weft_reference.files import Files, folder_files, to_json
from weft_reference.models.chat import chats
from weft_reference.models.generation.stops import byte_level

TEMPLATES = Path(__file__).parent / "templates"
# The present, for templates: seconds since 1970. Noon in Greenwich is the same day almost everywhere.
NOW = 1_721_995_200


@dataclass(frozen=True)
class ChatCase:
    """A tokenizer with templates, and what they make of chats; an answer is a text, or null where it is refused."""

    path: str
    templates: dict[str, str]
    calls: list[dict[str, Any]]
    tokens: dict[str, str] = field(default_factory=dict)
    files: bool = True

    def make(self) -> Files:
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level().backend_tokenizer, **self.tokens)
        tokenizer.chat_template = self.templates["default"] if len(self.templates) == 1 else dict(self.templates)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            tokenizer.save_pretrained(folder, save_jinja_files=self.files)
            files = folder_files(folder)
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        # The tokens are those of `generation/byte-level`: here, texts alone are compared.
        files["tokenizer.json"] = _few_tokens(files["tokenizer.json"])
        answers = [{**call, "text": _render(tokenizer, call)} for call in self.calls]
        files["chats.json"] = to_json({"format": 1, "reference": versions(), "now": NOW, "calls": answers})
        return {f"{self.path}/{name}": data for name, data in files.items()}


def _few_tokens(file: bytes) -> bytes:
    content = json.loads(file)
    content["model"]["merges"] = []
    content["model"]["vocab"] = {token: index for token, index in content["model"]["vocab"].items() if index < 8}
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def _render(tokenizer: PreTrainedTokenizerFast, call: dict[str, Any]) -> str | None:
    class Now(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(NOW, tz)

    options = {key: value for key, value in call.items() if key not in ("messages", "variables", "template")}
    try:
        with mock.patch("transformers.utils.chat_template_utils.datetime", Now):
            return tokenizer.apply_chat_template(
                json.loads(json.dumps(call["messages"])),
                chat_template=call.get("template"),
                tokenize=False,
                **options,
                **call.get("variables", {}),
            )
    except Exception as error:  # a refusal, whatever its class
        assert "is not defined" not in str(error), error
        return None


def goldens() -> Iterator[ChatCase]:
    def template(name: str) -> str:
        return (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")

    tokens = {"bos_token": "<|begin|>", "eos_token": "<|end|>", "pad_token": "<|pad|>"}
    yield ChatCase("chat/headers", {"default": template("headers")}, chats.HEADERS, tokens)
    yield ChatCase("chat/chatml", {"default": template("chatml")}, chats.CHATML, tokens, files=False)
    yield ChatCase("chat/instructions", {"default": template("instructions")}, chats.INSTRUCTIONS, tokens)
    yield ChatCase("chat/parts", {"default": template("parts")}, chats.PARTS, tokens)
    yield ChatCase("chat/values", {"default": template("values")}, chats.VALUES, tokens)
    named = {"default": template("chatml"), "tool_use": template("headers"), "short": "{{ messages[-1].content }}"}
    yield ChatCase("chat/several", named, chats.SEVERAL, tokens)
    yield ChatCase("chat/listed", named, chats.SEVERAL, tokens, files=False)
