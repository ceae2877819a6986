"""Which fields of `config.json` the reference reads, of each configuration class, and where.

    python -m weft_reference.fields bert clip

prints JSON: for each `model_type` the classes of its configuration and of those within it, and for each class its
fields, with the places (`file:line` within `transformers`) that read them; none for a field that nothing reads. Fields
are those that the class declares, other names that its `attribute_map` gives them, and names that code asks for by
`getattr`, by `kwargs.pop` or by a keyword (`head_dim_key="head_dim"`) without the class declaring them.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from weft_reference.environment import mismatches, settle

settle()

import transformers  # noqa: E402
from huggingface_hub.errors import StrictDataclassClassValidationError  # noqa: E402
from transformers import GenerationConfig, PreTrainedConfig  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

ROOT = Path(transformers.__file__).parent
# Code that runs whichever the model is, but for what only assists generation and pipelines of tasks that are not here.
ALWAYS = ("configuration_utils.py", "modeling_rope_utils.py", "modeling_utils.py", "generation/*.py", "pipelines/*.py")
NEVER = (
    "generation/candidate_generator.py",
    "generation/stopping_criteria.py",
    "pipelines/__init__.py",
    "pipelines/table_question_answering.py",
    "pipelines/text_to_audio.py",
)
# Code that runs where a modeling file names it, or what it leads to.
NAMED = (
    "masking_utils.py",
    "modeling_attn_mask_utils.py",
    "modeling_layers.py",
    "backbone_utils.py",
    "cache_utils.py",
    "pytorch_utils.py",
    "vision_utils.py",
    "utils/output_capturing.py",
    "integrations/moe.py",
    "integrations/sdpa_attention.py",
)
# Where the base classes of configurations are, which call themselves `self`.
OWN = ("configuration_utils.py", "modeling_rope_utils.py")
# Methods of theirs whose keyword arguments are a file's fields.
OPENING = ("__post_init__", "convert_rope_params_to_dict")
# Variables that hold settings of other kinds.
OTHERS = ("cache", "generation", "quantization", "compile", "peft", "distributed", "fusion", "semantic", "codec")


@dataclasses.dataclass
class Unit:
    """A function or class of a file: the names in its code, and what it reads of a configuration.

    `asked` are the reads that a class need not declare, by `getattr`, `hasattr`, `pop`, `in` or a keyword that ends
    with `_key`; `read` are the others.
    """

    names: set[str] = dataclasses.field(default_factory=set)
    read: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    asked: list[tuple[str, str]] = dataclasses.field(default_factory=list)


def last_name(node: ast.expr) -> str:
    """`config` of `self.model.config`, of `config()` and of `config["key"]`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return last_name(inner)
    return ""


def is_config(node: ast.expr, own: bool) -> bool:
    """Whether an expression is a configuration; `own`: in a method of a configuration class."""
    name = last_name(node)
    return ("config" in name and not any(other in name for other in OTHERS)) or (own and name == "self")


def text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def unit(tree: ast.AST, path: str, own: bool = False) -> Unit:
    """What a piece of a file reads; `own`: a configuration class."""
    found = Unit()
    methods = [node for node in ast.walk(tree) if own and isinstance(node, ast.FunctionDef) and node.name in OPENING]
    keywords = {id(node) for method in methods for node in ast.walk(method) if last_name(node) == "kwargs"}
    for node in ast.walk(tree):
        asked: str | None = None
        match node:
            case ast.Name(id=name):
                found.names.add(name)
            case ast.Attribute(value=value, attr=name):
                found.names.add(name)
                if isinstance(node.ctx, ast.Load) and is_config(value, own):
                    found.read.append((name, f"{path}:{node.lineno}"))
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[value, key, *_]) if is_config(value, own):
                asked = text(key)
            case ast.Call(func=ast.Attribute(value=value, attr="pop" | "get" | "setdefault"), args=[key, *_]):
                if is_config(value, own) or id(value) in keywords:
                    asked = text(key)
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[value]):
                if is_config(value, own) or id(value) in keywords:
                    asked = text(key)
            case ast.keyword(arg=str(arg), value=value) if arg.endswith("_key"):
                asked = text(value)
            case ast.FunctionDef(args=arguments):
                optional = arguments.args[len(arguments.args) - len(arguments.defaults) :] + arguments.kwonlyargs
                for argument, value in zip(optional, arguments.defaults + arguments.kw_defaults):
                    if argument.arg.endswith("_key") and (name := text(value)):
                        found.asked.append((name, f"{path}:{argument.lineno}"))
        if asked:
            found.asked.append((asked, f"{path}:{node.lineno}"))
    return found


@cache
def parsed(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def units(patterns: tuple[str, ...]) -> dict[str, list[Unit]]:
    """The functions and classes of files, by their names."""
    found: dict[str, list[Unit]] = {}
    for pattern in patterns:
        for file in sorted(ROOT.glob(pattern)):
            path = file.relative_to(ROOT).as_posix()
            if path in NEVER:
                continue
            for node in parsed(path).body:
                name = getattr(node, "name", "")
                own = path in OWN and isinstance(node, ast.ClassDef)
                found.setdefault(name, []).append(unit(node, path, own))
    return found


@cache
def always() -> list[Unit]:
    return [unit for named in units(ALWAYS).values() for unit in named]


def reached(starts: Iterable[Unit]) -> list[Unit]:
    """The shared functions and classes that code names, and what those name in turn."""
    shared, seen, found = units(NAMED), set(), []
    names = {name for start in starts for name in start.names}
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        for reader in shared.get(name, []):
            found.append(reader)
            names |= reader.names - seen
    return found


def imported(path: str) -> Iterator[str]:
    """The modeling files of other models that one imports from."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level and "modeling_" in (node.module or ""):
            folder = PurePosixPath(path).parent
            for _ in range(node.level - 1):
                folder = folder.parent
            file = f"{folder.joinpath(*(node.module or '').split('.'))}.py"
            if file.startswith("models/") and (ROOT / file).is_file():
                yield file


@cache
def modeling_files(cls: type[PreTrainedConfig]) -> tuple[str, ...]:
    """The files with the models of a configuration class: those beside it that name it, and what they import from."""
    folder = Path(inspect.getfile(cls)).parent
    beside = sorted(folder.glob("modeling_*.py"))
    named = [file for file in beside if cls.__name__ in file.read_text(encoding="utf-8")] or beside
    files = [file.relative_to(ROOT).as_posix() for file in named]
    for path in files:
        files.extend(file for file in imported(path) if file not in files)
    return tuple(files)


@cache
def modeling_units(path: str) -> list[Unit]:
    return [unit(node, path) for node in parsed(path).body]


def models(cls: type[PreTrainedConfig]) -> Iterator[Unit]:
    """What may be given this configuration: not what names another configuration of the same files alone."""
    module = inspect.getmodule(cls)
    others = {
        name
        for name, other in vars(module).items()
        if inspect.isclass(other)
        and issubclass(other, PreTrainedConfig)
        and other.__module__ == module.__name__
        and not issubclass(other, cls)
        and not issubclass(cls, other)
    }
    for path in modeling_files(cls):
        for reader in modeling_units(path):
            if cls.__name__ in reader.names or not reader.names & others:
                yield reader


def own_units(cls: type[PreTrainedConfig]) -> Iterator[Unit]:
    """The methods of a configuration class and of the model's classes that it extends."""
    for base in cls.__mro__:
        if base.__module__.startswith("transformers.models."):
            path = Path(inspect.getfile(base)).relative_to(ROOT).as_posix()
            for node in parsed(path).body:
                if getattr(node, "name", "") == base.__name__:
                    yield unit(node, path, own=True)


def declared(cls: type[PreTrainedConfig]) -> set[str]:
    return {field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")}


@cache
def fields(cls: type[PreTrainedConfig]) -> dict[str, list[str]]:
    """The fields of a configuration class, each with the places that read it; of the base class those that code reads
    whichever the model is, of others what they have besides."""
    names = declared(cls)
    standard = cls.attribute_map
    found: dict[str, list[str]] = {name: [] for name in sorted(names | set(standard))}
    base = cls is PreTrainedConfig
    readers = always() if base else [*own_units(cls), *models(cls)]
    readers = readers if base else [*readers, *reached(readers)]
    for reader in readers:
        for name, place in reader.read:
            if name in found:
                found[name].append(place)
        for name, place in reader.asked:
            is_code = name.startswith("_") or inspect.isroutine(getattr(cls, name, None))
            if name in found or not is_code:
                found.setdefault(name, []).append(place)
    if not base:
        for reader in always():
            for name, place in reader.read + reader.asked:
                if name in found:
                    found[name].append(place)
        everywhere = fields(PreTrainedConfig)
        own = (names | set(standard)) - declared(PreTrainedConfig)
        found = {
            name: places
            for name, places in found.items()
            if name in own or name not in everywhere or any(place.startswith("models/") for place in places)
        }
    # Generation takes its settings from fields that the class declares, whatever they are.
    for name in names & set(vars(GenerationConfig())):
        if name in found:
            found[name].append("generation/configuration_utils.py")
    # One of two names of a field is read where the other is.
    for alias, name in standard.items():
        both = found.get(alias, []) + found.get(name, [])
        found |= {known: both for known in (alias, name) if known in found}
    return {name: list(dict.fromkeys(places)) for name, places in found.items()}


# Fields that say nothing of inference where a file leaves them out.
UNTOLD = ("id2label", "label2id", "transformers_version", "dtype", "architectures")
# Longer lists are made by a rule of the class, such as a text for each layer.
LONGEST = 40


def plain(value: object) -> object:
    """A value as JSON has it; None where JSON has none, and of lists that a rule of the class makes."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value] if len(value) <= LONGEST else None
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    # JSON has no infinity; specs write it so.
    if isinstance(value, float) and math.isinf(value):
        return math.copysign(1e300, value)
    return value if isinstance(value, (bool, int, float, str)) else None


@cache
def defaults(cls: type[PreTrainedConfig]) -> dict[str, dict[str, object]]:
    """What the fields of a configuration class are where a file does not say, by their names: `declared`, and `settled`
    where a configuration of defaults has another value. What nothing reads is left out, and so is what the base class
    says. `within` has what those within it are where a file has none of them."""
    own = {}
    for field in dataclasses.fields(cls):
        made = field.default_factory is not dataclasses.MISSING
        own[field.name] = plain(field.default_factory() if made else field.default)
    base = {} if cls is PreTrainedConfig else defaults(PreTrainedConfig)["declared"]
    read = {name for name, places in fields(cls).items() if places}
    names = read & (set(own) | set(cls.attribute_map))
    example = settled(cls)
    found: dict[str, dict[str, object]] = {"declared": {}, "settled": {}}
    for name, specs in cls.sub_configs_defaults.items():
        if specs.init_kwargs:
            found.setdefault("within", {})[name] = plain(specs.init_kwargs)
    for name in sorted(names - set(UNTOLD)):
        value = own.get(cls.attribute_map.get(name, name))
        after = plain(getattr(example, name, None))
        if name not in base or base[name] != value:
            found["declared"][name] = value
        if after is not None and after != value:
            found["settled"][name] = after
    return found


def settled(cls: type[PreTrainedConfig]) -> PreTrainedConfig | None:
    """A configuration of defaults; none where the class refuses its own, as `Gemma4AssistantConfig` does."""
    try:
        example = cls()
    except StrictDataclassClassValidationError:
        return None
    example.allow_global_per_layer_attribute_access = True
    return example


def configurations(cls: type[PreTrainedConfig], path: str = "") -> Iterator[tuple[str, type[PreTrainedConfig]]]:
    """A configuration class and those within it, by their paths in `config.json`; the default where any may be."""
    yield path, cls
    held = {name: within.config_class for name, within in cls.sub_configs_defaults.items()}
    for name, other in held.items():
        if not issubclass(other, PreTrainedConfig):
            model_type = cls.sub_configs_defaults[name].model_type
            if model_type not in CONFIG_MAPPING:
                # `rf_detr_vit` of RF-DETR, which `__post_init__` makes a configuration of another model.
                model_type = getattr(cls(), name).model_type
            held[name] = CONFIG_MAPPING[model_type]
    # Older classes say it by the type of a field alone: `attn_config: MptAttentionConfig | dict`.
    beside = {name: other for name, other in vars(inspect.getmodule(cls)).items() if inspect.isclass(other)}
    for field in dataclasses.fields(cls):
        for name in re.findall(r"\w+", str(field.type)):
            if field.name not in held and issubclass(beside.get(name, object), PreTrainedConfig):
                held[field.name] = beside[name]
    for name, other in held.items():
        yield from configurations(other, f"{path}.{name}".lstrip("."))


def diffusers_fields(names: Iterable[str]) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, list[str]]]]:
    """The classes of `diffusers` among these (`diffusers:AutoencoderKL`), and what each is made with: all of it is read."""
    if not (names := [name for name in names if name.startswith("diffusers:")]):
        return {}, {}
    import diffusers

    models: dict[str, dict[str, str]] = {}
    classes: dict[str, dict[str, list[str]]] = {}
    for name in names:
        cls = getattr(diffusers, name.removeprefix("diffusers:"))
        _, first = inspect.getsourcelines(cls)
        path = Path(inspect.getfile(cls)).relative_to(Path(diffusers.__file__).parent).as_posix()
        models[name] = {"": cls.__name__}
        classes[cls.__name__] = {
            field: [f"{path}:{first}"]
            for field, parameter in inspect.signature(cls.__init__).parameters.items()
            if field != "self" and not field.startswith("_") and parameter.kind is not parameter.VAR_KEYWORD
        }
    return models, classes


def open_clip_fields(names: Iterable[str]) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, list[str]]]]:
    """The same of models of `open_clip` (`open_clip:CoCa`): what the class is made with, and the fields of the dataclasses within."""
    if "open_clip:CoCa" not in names:
        return {}, {}
    from open_clip import coca_model, model

    within = {"vision_cfg": model.CLIPVisionCfg, "text_cfg": model.CLIPTextCfg, "multimodal_cfg": coca_model.MultimodalCfg}
    classes = {}
    for cls in (coca_model.CoCa, *within.values()):
        _, first = inspect.getsourcelines(cls)
        place = f"{Path(inspect.getfile(cls)).name}:{first}"
        classes[cls.__name__] = {field: [place] for field in inspect.signature(cls).parameters if field != "cast_dtype"}
    paths = {"": "CoCa"} | {path: cls.__name__ for path, cls in within.items()}
    return {"open_clip:CoCa": paths}, classes


def described(model_types: Iterable[str]) -> dict[str, object]:
    """All that is printed."""
    model_types = list(model_types)
    models = {
        name: dict(configurations(CONFIG_MAPPING[name])) for name in model_types if name in CONFIG_MAPPING
    }
    diffusion, made_with = diffusers_fields(model_types)
    open_clip, made_of = open_clip_fields(model_types)
    classes = {cls for paths in models.values() for cls in paths.values()} | {PreTrainedConfig}
    return {
        "transformers": transformers.__version__,
        "model_types": {
            name: {path: cls.__name__ for path, cls in paths.items()} for name, paths in models.items()
        }
        | diffusion
        | open_clip,
        "classes": {cls.__name__: fields(cls) for cls in sorted(classes, key=lambda cls: cls.__name__)} | made_with | made_of,
        "defaults": {cls.__name__: defaults(cls) for cls in sorted(classes, key=lambda cls: cls.__name__)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model_types", nargs="+", metavar="MODEL_TYPE")
    options = parser.parse_args()
    if wrong := mismatches():
        parser.error("; ".join(wrong))
    print(json.dumps(described(options.model_types)))


if __name__ == "__main__":
    main()
