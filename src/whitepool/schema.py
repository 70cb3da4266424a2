"""Plain data to frozen dataclasses and back, where the dataclasses are the whole of the format.

Every key and value is checked against the annotations; nothing named in the data is imported.
An annotation is a scalar, a `Literal`, a dataclass, a union of these, ``tuple[X, ...]`` or
``Mapping[str, X]``. In a union of dataclasses the field ``kind`` tells which is meant.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from whitepool.errors import UserError

T = TypeVar("T")

LARGEST = 200_000  # characters of a file; ours have about a thousand
DEEPEST = 20  # levels, of which ours have three; the parser takes quadratic time in them
LOADER = yaml.SafeLoader
FORBIDDEN = {
    yaml.TagToken: "a YAML tag",
    yaml.AnchorToken: "a YAML anchor",
    yaml.AliasToken: "a YAML alias",
    yaml.DirectiveToken: "a YAML directive",
}
OPENING = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def parse(text: str) -> Any:
    """Plain data of a YAML text: mappings, lists, texts, numbers, booleans and null.

    Raises:
        UserError: not YAML, or YAML with tags, anchors, aliases or a key given twice.
    """
    if len(text) > LARGEST:
        raise UserError(f"the file has {len(text):,} characters, over {LARGEST:,}.")
    try:
        depth = 0
        for token in yaml.scan(text, Loader=LOADER):
            depth += isinstance(token, OPENING) - isinstance(token, CLOSING)
            if depth > DEEPEST:
                raise UserError(f"the file has parts within parts over {DEEPEST} levels deep.")
            if type(token) in FORBIDDEN:
                line = token.start_mark.line + 1
                raise UserError(f"line {line} has {FORBIDDEN[type(token)]}, which is not read.")
        _check_keys(yaml.compose(text, Loader=LOADER))
        return yaml.load(text, Loader=LOADER)
    except UserError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1})" if mark else ""
        raise UserError(f"the file is not plain YAML: {error.problem}{where}.") from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, LookupError) as error:
        raise UserError(f"the file is not plain YAML: {_first_line(error)}.") from error


def _check_keys(node: Any) -> None:
    """Refuse a key that is given twice, of which YAML would keep the last."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise UserError(f"line {line} has a key of parts.")
            if key.value in seen:
                raise UserError(f"line {line} gives {key.value[:80]} twice.")
            seen.add(key.value)
            _check_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_keys(value)


def read(kind: type[T], content: Any, where: str = "", given: Mapping[str, Any] | None = None) -> T:
    """An instance of the dataclass ``kind`` from plain data.

    Args:
        kind: a frozen dataclass.
        content: what `parse` gave.
        where: path of the content in the file, for messages.
        given: fields that do not come from the file.

    Raises:
        UserError: an unknown or missing key, a value of another type; the message names it.
    """
    if not isinstance(content, dict):
        raise UserError(f"{where or 'the file'} is {_show(content)}, not a mapping of keys.")
    hints = _hints(kind)  # type: ignore[arg-type]
    given = given or {}
    known = {f.name: f for f in fields(kind) if f.name not in given}  # type: ignore[arg-type]
    prefix = f"{where}." if where else ""
    for key in content:
        if key not in known:
            choices = ", ".join(known)
            raise UserError(f"there is no key {_show(f'{prefix}{key}')}: the keys are {choices}.")
    values = dict(given)
    for name, field in known.items():
        if name in content:
            values[name] = _value(hints[name], content[name], f"{prefix}{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise UserError(f"{prefix}{name} is missing.")
    return kind(**values)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(kind: Any, value: Any, where: str) -> Any:
    """``value`` as the annotation ``kind`` asks for it."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    structures = [option for option in options if is_dataclass(option)]
    if isinstance(value, dict) and structures:
        return read(_chosen(structures, value, where), value, where)
    for option in options:
        origin = get_origin(option)
        if origin is Literal and any(
            value == x and type(value) is type(x) for x in get_args(option)
        ):
            return value
        if origin is tuple and isinstance(value, list):
            inner = get_args(option)[0]
            return tuple(_value(inner, x, f"{where}[{i}]") for i, x in enumerate(value))
        if origin is Mapping and isinstance(value, dict):
            inner = get_args(option)[1]
            return {_key(k, where): _value(inner, v, f"{where}.{k}") for k, v in value.items()}
        if type(value) is option:
            return _finite(value, where)
        if option is float and type(value) is int:
            return value
    raise UserError(f"{where} is {_show(value)}: give {' or '.join(map(_describe, options))}.")


def _chosen(structures: list[Any], value: dict[Any, Any], where: str) -> Any:
    """Which of several dataclasses a mapping is, by its ``kind``."""
    if len(structures) == 1:
        return structures[0]
    kinds = {get_args(_hints(s)["kind"])[0]: s for s in structures}
    if (kind := value.get("kind")) in kinds if isinstance(value.get("kind"), str) else False:
        return kinds[kind]
    raise UserError(
        f"{where}.kind is {_show(value.get('kind'))}: choose one of {', '.join(kinds)}."
    )


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str) or not key or key.startswith("_") or not key.isprintable():
        raise UserError(f"{where} has the key {_show(key)}: give a name that begins with a letter.")
    return key


def _finite(value: Any, where: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{where} is {value}: give a finite number.")
    return value


def _describe(kind: Any) -> str:
    if kind is NoneType:
        return "null"
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list"
    return NAMES.get(kind, "a mapping of keys")


def plain(value: Any) -> Any:
    """Plain data of a dataclass, which `read` turns back into it; absent options are left out."""
    if is_dataclass(value):
        items = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: plain(x) for name, x in items if x is not None}
    if isinstance(value, Mapping):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, tuple):
        return [plain(x) for x in value]
    return value


def _show(value: Any) -> str:
    text = repr(value) if not isinstance(value, dict | list) else type(value).__name__
    text = {"dict": "a mapping", "list": "a list", "None": "null"}.get(text, text)
    return text if len(text) <= 80 else text[:77] + "…'"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200].rstrip(".") or type(error).__name__
