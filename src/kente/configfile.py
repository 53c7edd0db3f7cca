"""Settings on disk and on the command line: TOML <-> dataclasses, `--set a.b=c`, "did you mean".

A section of the file is a field of `Config`. Where the field's type is a union of dataclasses, `kind` tells them apart.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import hashlib
import inspect
import json
import math
import re
import sys
import textwrap
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from kente.config import Config
from kente.errors import ConfigError

# ---------------------------------------------------------------- what settings there are


def _sections(kind: type) -> dict[str, tuple[type, ...]]:
    """{"model": (TransformerConfig, ...), ...}: the dataclasses each section may be."""
    sections = {}
    for name, hint in typing.get_type_hints(kind).items():
        is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        sections[name] = typing.get_args(hint) if is_union else (hint,)
    return sections


def _fields(section: type) -> dict[str, Any]:
    """{"width": int, ...}: the settings of one section and their types."""
    hints = typing.get_type_hints(section)
    return {field.name: hints[field.name] for field in dataclasses.fields(section)}


def _kind_of(section: type) -> str:
    """The value of `kind` that names this member of a union."""
    return str(typing.get_args(_fields(section)["kind"])[0])


@functools.cache
def _help_in(module: str) -> dict[str, dict[str, str]]:
    """{"TransformerConfig": {"width": "Size of ..."}}: the strings under the fields, which Python itself throws away."""
    texts: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            texts[node.name] = {}
            for statement, following in zip(node.body, node.body[1:], strict=False):
                match statement, following:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        texts[node.name][name] = " ".join(text.split())
    return texts


def _help_of(section: type) -> dict[str, str]:
    """The help of each setting of a section, inherited ones included."""
    texts: dict[str, str] = {}
    for ancestor in reversed(section.__mro__):
        if dataclasses.is_dataclass(ancestor):
            texts |= _help_in(ancestor.__module__).get(ancestor.__name__, {})
    return texts


def help_texts(kind: type = Config) -> dict[str, str]:
    """{"model.width": "Size of every vector between layers.", ...} for every setting, in the order of `config.py`."""
    texts: dict[str, str] = {}
    for section, members in _sections(kind).items():
        for member in members:
            help_of = _help_of(member)
            for name in _fields(member):
                texts.setdefault(f"{section}.{name}", help_of.get(name, ""))
    return texts


def listed_settings(kind: type = Config) -> list[tuple[str, Any, str, str]]:
    """(name, default, help, condition) of every setting; condition is the `kind` it belongs to, where a section may be of several."""
    listed = []
    for section, members in _sections(kind).items():
        for member in members:
            condition = f"{section}.kind = {_kind_of(member)}" if len(members) > 1 else ""
            defaults, help_of = _values(member()), _help_of(member)
            listed += [(f"{section}.{name}", defaults[name], help_of.get(name, ""), condition) for name in defaults]
    return listed


def _no_such(name: str, config: Any) -> ConfigError:
    """The error for a setting nobody knows, with the nearest one somebody does."""
    known = [
        f"{section}.{field.name}"
        for section in _sections(type(config))
        for field in dataclasses.fields(getattr(config, section))
    ]
    if near_section := difflib.get_close_matches(name, _sections(type(config)), n=1, cutoff=0.75):
        return ConfigError(f"no section called {name}; did you mean {near_section[0]}?")
    last = {full.partition(".")[2]: full for full in reversed(known)}
    wanted = name.rpartition(".")[2]
    near = (
        [full for full in known if full.partition(".")[2] == wanted]
        or difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        or [last[match] for match in difflib.get_close_matches(wanted, last, n=1, cutoff=0.75)]
    )
    if near:
        return ConfigError(f"no setting called {name}; did you mean {near[0]}?")
    section = name.partition(".")[0]
    if section in _sections(type(config)):
        names = ", ".join(field.name for field in dataclasses.fields(getattr(config, section)))
        return ConfigError(f"no setting called {name}; {section} has {names}")
    return ConfigError(f"no setting called {name}; the sections are {', '.join(_sections(type(config)))}")


# ---------------------------------------------------------------- one value, from text or TOML to its type


def _whole(value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            value = float(value)  # 1e4 is a whole number too
    if isinstance(value, bool) or not isinstance(value, int | float) or int(value) != value:
        raise ValueError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not math.isfinite(float(value)):
        raise ValueError
    return float(value)


def _truth(value: Any) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise ValueError
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


_READERS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    int: (_whole, "a whole number"),
    float: (_number, "a number"),
    bool: (_truth, "true or false"),
    str: (_string, "text"),
}


def _read_value(name: str, value: Any, wanted: Any) -> Any:
    """`value`, native from TOML or text from the command line, as the type the setting was declared with."""
    if typing.get_origin(wanted) is Literal:
        choices = typing.get_args(wanted)
        if value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(map(str, choices))}, not {value!r}")
        return value
    if typing.get_origin(wanted) is tuple:
        parts = (
            [part for part in re.split(r"[\s,]+", value.strip("[]() ")) if part] if isinstance(value, str) else value
        )
        kinds = typing.get_args(wanted)
        if kinds[1] is Ellipsis:  # as many as one likes
            if not isinstance(parts, list | tuple) or not parts:
                raise ConfigError(f"{name} should be one or more values such as 3,3, not {value!r}")
            kinds = kinds[:1] * len(parts)
        if not isinstance(parts, list | tuple) or len(parts) != len(kinds):
            example = ",".join("0" for _ in kinds)
            raise ConfigError(f"{name} should be {len(kinds)} values such as {example}, not {value!r}")
        return tuple(_read_value(name, part, kind) for part, kind in zip(parts, kinds, strict=True))
    reader, description = _READERS[wanted]
    try:
        return reader(value)
    except (ValueError, OverflowError):
        raise ConfigError(f"{name} should be {description}, not {value!r}") from None


# ---------------------------------------------------------------- many values onto a Config


def _member(config: Any, section: str, settings: Mapping[str, Any]) -> Any:
    """What the settings of a section are laid over: the section as it is, or the defaults of another `kind`."""
    current = getattr(config, section)
    members = _sections(type(config))[section]
    if len(members) == 1 or "kind" not in settings:
        return current
    by_kind = {_kind_of(member): member for member in members}
    kind = _read_value(f"{section}.kind", settings["kind"], Literal[tuple(by_kind)])
    return current if isinstance(current, by_kind[kind]) else by_kind[kind]()


def apply(config: Any, settings: Mapping[str, Mapping[str, Any]]) -> Any:
    """`config` with {"model": {"width": 256}} laid over it: all at once, so that checks see the end result."""
    sections = {}
    for section, values in settings.items():
        if section not in _sections(type(config)):
            raise _no_such(section, config)
        if not isinstance(values, Mapping):
            raise ConfigError(f"{section} should be a section, [{section}], not {values!r}")
        base = _member(config, section, values)
        known = _fields(type(base))
        for name in values:
            if name not in known:
                raise _no_such(f"{section}.{name}", dataclasses.replace(config, **{section: base}))
        read = {name: _read_value(f"{section}.{name}", value, known[name]) for name, value in values.items()}
        sections[section] = dataclasses.replace(base, **read)
    return dataclasses.replace(config, **sections)


def override(config: Config, assignments: Iterable[str]) -> Config:
    """`config` with ["model.width=256", ...] laid over it; a later assignment wins."""
    settings: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigError(f"a setting is written section.name=value, such as model.width=256, not {assignment!r}")
        section, dot, key = name.partition(".")
        if not dot or section not in _sections(type(config)):
            raise _no_such(name, config)
        settings.setdefault(section, {})[key] = value.strip().strip("\"'")
    result: Config = apply(config, _with_room(config, settings))
    return result


def _with_room(config: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The same settings; where longer texts are asked for and nobody says how many tokens a batch holds, it holds one of them."""
    batches = settings.get("batches")
    if not isinstance(config, Config) or not isinstance(batches, dict) or "tokens" in batches:
        return settings
    longest = _read_value("batches.max_length", batches.get("max_length", 0), int)
    return {**settings, "batches": {**batches, "tokens": longest}} if longest > config.batches.tokens else settings


# ---------------------------------------------------------------- files


def _line_of(text: str, message: str) -> int | None:
    """The line that sets the `section.key` a message speaks of, to show a person where to look."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w-]+)\s*\]", line):
            section = header[1]
            name = section
        elif key := re.match(r"\s*([\w.-]+)\s*=", line):
            name = f"{section}.{key[1]}" if section else key[1]
        else:
            continue
        if re.search(rf"(^|called ){re.escape(name)}($|[\s;,?])", message):
            return number
    return None


def load_config(path: str | Path, base: Config | None = None) -> Config:
    """The settings in a TOML file, laid over `base` (the defaults)."""
    text, settings = _read_toml(Path(path))
    base = base or Config()
    try:
        result: Config = apply(base, _with_room(base, settings))
        return result
    except ConfigError as error:
        place = _line_of(text, str(error))
        raise ConfigError(f"{path}:{place}: {error}" if place else f"{path}: {error}") from None


def _read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text (byte {error.object[error.start]:#04x})") from None
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(where[1]) if where and where[1] else len(text.splitlines())
        problem = str(error)[: where.start()] if where else str(error)
        raise ConfigError(f"{path}:{line}: not TOML: {problem}") from None
    return text, settings


def recipes() -> dict[str, Path]:
    """The recipes that come with Kente: name -> file."""
    here = Path(__file__).resolve().parent
    for folder in (here / "recipes", here.parents[1] / "recipes"):  # installed, or a source checkout
        if found := sorted(folder.glob("*.toml")):
            return {path.stem: path for path in found}
    return {}


def recipe_description(path: str | Path) -> str:
    """The comment a recipe opens with."""
    lines = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return " ".join(lines)


def load_recipe(name_or_path: str | Path, base: Config | None = None) -> Config:
    """A recipe by its name, or any TOML file by its path, laid over `base` (the defaults)."""
    return load_config(recipe_path(name_or_path), base)


def recipe_settings(name_or_path: str | Path) -> frozenset[str]:
    """{"model.width", ...}: the settings a recipe decides; the others it leaves open."""
    _, settings = _read_toml(recipe_path(name_or_path))
    return frozenset(f"{section}.{name}" for section, values in settings.items() for name in values)


def recipe_path(name_or_path: str | Path) -> Path:
    """The file of a recipe, which is named or is a TOML file of one's own."""
    known = recipes()
    if str(name_or_path) in known:
        return known[str(name_or_path)]
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        return path
    near = difflib.get_close_matches(str(name_or_path), known, n=1)
    question = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(
        f"no recipe called {name_or_path}; the recipes are {', '.join(known)}, "
        f"and a file of your own ends in .toml.{question}"
    )


# ---------------------------------------------------------------- writing


def to_dict(config: Any) -> dict[str, dict[str, Any]]:
    """{"model": {"width": 512, ...}, ...}, each value of the type it was declared with."""
    return {section: _values(getattr(config, section)) for section in _sections(type(config))}


def _values(section: Any) -> dict[str, Any]:
    """The settings of one section. minutes=10 and minutes=10.0 are the same setting, so both become 10.0."""
    fields = _fields(type(section))
    return {
        name: float(getattr(section, name)) if kind is float else getattr(section, name)
        for name, kind in fields.items()
    }


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace(
        "\x7f", "\\u007f"
    )  # a JSON string is a TOML string, but for one character


def dump_config(config: Any) -> str:
    """The whole of `config` as TOML, with the help above each setting. `load_config` reads back an equal Config."""
    lines: list[str] = []
    for section, values in to_dict(config).items():
        kind = type(getattr(config, section))
        help_of = _help_of(kind)
        lines += [*_comment(" ".join((kind.__doc__ or "").split())), f"[{section}]"]
        for name, value in values.items():
            lines += [*_comment(help_of.get(name, "")), f"{name} = {_toml(value)}"]
        lines.append("")
    return "\n".join(lines)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, 118, initial_indent="# ", subsequent_indent="# ")


def config_hash(config: Any) -> str:
    """sha256 over every setting's name and value: of a whole Config, or of one section of it."""
    parts = [getattr(config, field.name) for field in dataclasses.fields(config)]
    if any(map(dataclasses.is_dataclass, parts)):
        values: dict[str, Any] = {
            section: said for section in _sections(type(config)) if (said := _fingerprint(getattr(config, section)))
        }
    else:
        values = _fingerprint(config)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _fingerprint(section: Any) -> dict[str, Any]:
    """The settings that tell one section from another: those added later count only where they are not at their default.

    Empty for a section that came later and is as it comes.
    """
    unsaid = {
        field.name
        for field in dataclasses.fields(section)
        if field.metadata.get("later") and getattr(section, field.name) == field.default
    }
    return {name: value for name, value in _values(section).items() if name not in unsaid}


def differences(configs: Mapping[str, Config]) -> dict[str, dict[str, Any]]:
    """{"model.width": {name: value}} for every setting on which the configs, each under its name, do not all agree.

    A config that has no such setting is not named there.
    """
    flat = {
        name: {
            f"{section}.{key}": value for section, values in to_dict(config).items() for key, value in values.items()
        }
        for name, config in configs.items()
    }
    settings = dict.fromkeys(setting for values in flat.values() for setting in values)
    table = {
        setting: {name: values[setting] for name, values in flat.items() if setting in values} for setting in settings
    }
    return {
        setting: values
        for setting, values in table.items()
        if len(values) < len(flat) or len(set(map(str, values.values()))) > 1
    }
