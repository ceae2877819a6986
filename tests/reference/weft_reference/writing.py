"""Task goldens of models that write texts: small tokenizers, prompts, and the pipelines that release 5 has no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    MBart50Tokenizer,
    MBartTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES

from weft_reference.models.generation.stops import byte_level
from weft_reference.tasks import Answer, Call, TaskCase
from weft_reference.wordpiece import DATA

# What the pipelines take where neither the caller nor the checkpoint says; as of release 4.57.
DEFAULTS = {"max_new_tokens": 256, "num_beams": 4}
NAMES = {"text2text-generation": "generated", "summarization": "summary", "translation": "translation"}


@cache
def unigram_tokenizer(pair: str | None = None) -> PreTrainedTokenizerBase:
    """As T5's: pieces with `▁` for spaces, `<pad>` 0, `</s>` 1 after every text, `<unk>` 2; `pair` is how two are joined.

    `data/unigram.json` was learned from `data/corpus.txt`; learning it again would order equal scores anew.
    """
    pieces = [(piece, score) for piece, score in json.loads((DATA / "unigram.json").read_text(encoding="utf-8"))]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece, _ in pieces[:3]])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair=pair, special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )


def text_to_text(task: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Answer:
    """What `Text2TextGenerationPipeline` and those made from it do in release 4.57."""

    def answer(inputs: Any, parameters: dict[str, Any]) -> Any:
        given = dict(parameters)
        languages = [given.pop("src_lang", None), given.pop("tgt_lang", None)]
        key = f"translation_{languages[0]}_to_{languages[1]}" if all(languages) else task
        specific = dict((getattr(model.config, "task_specific_params", None) or {}).get(key, {}))
        prefix = specific.pop("prefix", "")
        truncation = given.pop("truncation", False)
        given = {**specific, **given}
        known = {**model.generation_config.to_diff_dict(), **given}
        for name, value in DEFAULTS.items():
            if known.get(name) is None and not (name == "max_new_tokens" and known.get("max_length") is not None):
                given[name] = value
        if "stop_strings" in known:
            given["tokenizer"] = tokenizer
        multilingual = task == "translation" and hasattr(tokenizer, "_build_translation_inputs")
        results = []
        for text in [inputs] if isinstance(inputs, str) else inputs:
            if multilingual:
                source, target = languages
                encoded = tokenizer._build_translation_inputs(
                    text, return_tensors="pt", truncation=truncation, src_lang=source, tgt_lang=target
                )
                given["forced_bos_token_id"] = encoded["forced_bos_token_id"]
            else:
                encoded = tokenizer(prefix + text, return_tensors="pt", truncation=truncation)
            written = model.generate(encoded["input_ids"], attention_mask=encoded["attention_mask"], **given)
            texts = [tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False) for ids in written]
            results.append([{f"{NAMES[task]}_text": text} for text in texts])
        if isinstance(inputs, str):
            return results[0]
        return [result[0] for result in results] if all(len(result) == 1 for result in results) else results

    return answer


TEXTS = ["The weaver throws the weft across the warp.", "A shuttle!", "Rivers are long, and cloth is wide."]
SHORT = {"max_new_tokens": 12}
GREEDY = {**SHORT, "num_beams": 1}


def text_to_text_goldens(
    model: str, model_class: str, config: Callable[..., PreTrainedConfig], **changes: Any
) -> Iterator[TaskCase]:
    """A tiny checkpoint for each task; texts greedily and with beams, one by one and together."""
    tokenizer = unigram_tokenizer()
    sizes = {"vocab_size": len(tokenizer), **changes}
    generation = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    yield TaskCase(
        f"{model}/tasks/text2text-generation",
        "text2text-generation",
        model_class,
        config(**sizes),
        tokenizer,
        (
            Call(TEXTS[0], SHORT),
            Call(TEXTS[0], GREEDY),
            Call(TEXTS, GREEDY),
            Call(TEXTS, {**SHORT, "num_beams": 3, "num_return_sequences": 3, "length_penalty": 0.5}),
            Call(TEXTS[2], {**SHORT, "num_beams": 3, "early_stopping": True, "no_repeat_ngram_size": 2}),
            Call(TEXTS[2], {**GREEDY, "repetition_penalty": 1.6, "encoder_no_repeat_ngram_size": 2}),
            Call(TEXTS[1], {**GREEDY, "min_new_tokens": 5, "bad_words_ids": [[7], [9, 11]], "encoder_repetition_penalty": 1.5}),
            Call(TEXTS[1], {"max_length": 7, "forced_eos_token_id": 1, "num_beams": 2}),
        ),
        answers=text_to_text,
        generation=generation,
    )
    summarization = {"prefix": "sum: ", "max_length": 14, "min_length": 4, "num_beams": 3, "no_repeat_ngram_size": 3}
    yield TaskCase(
        f"{model}/tasks/summarization",
        "summarization",
        model_class,
        config(**sizes, task_specific_params={"summarization": {**summarization, "early_stopping": True}}),
        tokenizer,
        (Call(" ".join(TEXTS)), Call(TEXTS, {"max_length": 9}), Call(TEXTS[0], {"num_beams": 1})),
        answers=text_to_text,
        generation=generation,
    )
    pairs = {"translation_en_to_de": {"prefix": "to German: ", **SHORT}, "translation_en_to_fr": {"prefix": "to French: "}}
    yield TaskCase(
        f"{model}/tasks/translation",
        "translation",
        model_class,
        config(**sizes, task_specific_params=pairs),
        tokenizer,
        (
            Call(TEXTS[0], {"src_lang": "en", "tgt_lang": "de"}),
            Call(TEXTS, {"src_lang": "en", "tgt_lang": "fr", "max_new_tokens": 8}),
            Call(TEXTS[1], GREEDY),
        ),
        answers=text_to_text,
        generation={**generation, "renormalize_logits": True},
    )


LANGUAGES = (
    Call(TEXTS[0], {"src_lang": "en_XX", "tgt_lang": "de_DE", **SHORT}),
    Call(TEXTS, {"src_lang": "fr_XX", "tgt_lang": "en_XX", **SHORT}),
    Call(TEXTS[2], {"src_lang": "ja_XX", "tgt_lang": "fr_XX", **GREEDY}),
)


def multilingual_goldens(
    model: str, model_class: str, config: Callable[..., PreTrainedConfig], **changes: Any
) -> Iterator[TaskCase]:
    """Translations by tokenizers that begin or end a text with its language."""
    pieces = [(piece, score) for piece, score in json.loads((DATA / "unigram.json").read_text(encoding="utf-8"))]
    known = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces[3:]]
    known += [(language, 0.0) for language in FAIRSEQ_LANGUAGE_CODES] + [("<mask>", 0.0)]
    for name, tokenizer in (
        ("translation", MBart50Tokenizer(vocab=known, src_lang="en_XX", tgt_lang="de_DE")),
        ("translation-suffix", MBartTokenizer(vocab=known, src_lang="en_XX", tgt_lang="de_DE")),
    ):
        yield TaskCase(
            f"{model}/tasks/{name}",
            "translation",
            model_class,
            config(vocab_size=len(tokenizer), **changes),
            tokenizer,
            LANGUAGES,
            "The language of a text is a token of it, and another begins the answer.",
            answers=text_to_text,
            generation={"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1, "bos_token_id": 0},
        )


@cache
def chat_tokenizer() -> PreTrainedTokenizerBase:
    """Byte-level, with a chat template; `<|pad|>` 0, `<|end|>` 1 and the marks of turns after the learned tokens."""
    tokenizer = Tokenizer.from_str(byte_level().backend_tokenizer.to_str())
    tokenizer.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in ("<|start|>", "<|turn|>")])
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|start|>", eos_token="<|end|>", pad_token="<|pad|>", padding_side="left"
    )
    made.chat_template = (
        "{{ bos_token }}{% for message in messages %}<|turn|>{{ message.role }}\n{{ message.content | trim }}\n{% endfor %}"
        "{% if tools %}{{ tools | tojson }}{% endif %}"
        "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
    )
    return made


PROMPTS = ["The weaver", "A shuttle carries the thread from one side to the other", "é😀"]
GREETING = [{"role": "user", "content": "What is a weft?"}]
BEGUN = [*GREETING, {"role": "assistant", "content": "The thread"}]
ASIDE = [{"role": "system", "content": "You weave."}, *GREETING]


def text_generation_goldens(model: str, model_class: str, config: Callable[..., PreTrainedConfig]) -> Iterator[TaskCase]:
    """Prompts and chats, one by one and together, greedily and with beams."""
    tokenizer = chat_tokenizer()
    greedy = {"do_sample": False, "max_new_tokens": 10}
    tool = {"type": "function", "function": {"name": "count", "parameters": {}}}
    yield TaskCase(
        f"{model}/tasks/text-generation",
        "text-generation",
        model_class,
        config(vocab_size=len(tokenizer), bos_token_id=tokenizer.bos_token_id, eos_token_id=1, pad_token_id=0),
        tokenizer,
        (
            Call(PROMPTS[0], greedy),
            Call(PROMPTS, greedy),
            Call(PROMPTS, {**greedy, "batch_size": 3}),
            Call(PROMPTS, {**greedy, "return_full_text": False, "num_beams": 3, "num_return_sequences": 2}),
            Call(PROMPTS[1], {**greedy, "num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "batch_size": 2}),
            Call(PROMPTS, {**greedy, "batch_size": 2, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2}),
            Call(PROMPTS[0], {**greedy, "max_new_tokens": 20, "stop_sequence": [" fO", "um"]}),
            Call(PROMPTS[2], {**greedy, "min_new_tokens": 6, "eos_token_id": [1, 30, 40, 50], "skip_special_tokens": False}),
            Call(GREETING, greedy),
            Call([GREETING, ASIDE], {**greedy, "batch_size": 2}),
            Call(BEGUN, greedy),
            Call(BEGUN, {**greedy, "continue_final_message": False, "return_full_text": False}),
            Call(GREETING, {**greedy, "tools": [tool]}),
        ),
        generation={"bos_token_id": tokenizer.bos_token_id, "eos_token_id": 1, "pad_token_id": 0},
    )
