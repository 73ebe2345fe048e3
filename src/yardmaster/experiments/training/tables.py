"""Settings as tables: frozen dataclasses filled in from TOML, and written back as TOML.

Only the standard library is needed, so that a machine with little more than torch can train. TOML
has no word for none: the text `"none"` stands for it wherever a setting may be left open.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.names import did_you_mean

NONE = "none"
"""How a setting that is left open is written."""
Settings = TypeVar("Settings")

_KINDS: Mapping[type, str] = {
    int: "a whole number", float: "a number", str: "text", bool: "true or false",
}  # fmt: skip


def filled(base: Settings, table: Mapping[str, Any], path: str, mistakes: list[str]) -> Settings:
    """Return settings with the values of a table in place of their own.

    Args:
        base: a frozen dataclass of plain values, tuples of them, and dataclasses like itself.
        table: what TOML gave for it.
        path: where the table stands in its document, such as `learner.network`.
        mistakes: unknown keys and wrong values are added here, each with its path.
    """
    parts = {
        key: filled(own, given, f"{path}.{key}", mistakes)
        for key, given in table.items()
        if isinstance(given, Mapping) and dataclasses.is_dataclass(own := getattr(base, key, None))
    }
    plain = {key: given for key, given in table.items() if key not in parts}
    values = checked(plain, kinds_of(type(base)), path, mistakes) | parts
    return _replaced(base, values, path, mistakes)


def kinds_of(settings: type) -> dict[str, Any]:
    """Return the kind of every setting of a dataclass, by name."""
    kinds = typing.get_type_hints(settings)
    return {field.name: kinds[field.name] for field in dataclasses.fields(settings)}


def checked(
    table: Mapping[str, Any], kinds: Mapping[str, Any], path: str, mistakes: list[str]
) -> dict[str, Any]:
    """Return the values of a table as the kinds that are wanted, without those that are wrong."""
    values: dict[str, Any] = {}
    for key, given in table.items():
        if key not in kinds:
            hint, allowed = did_you_mean(key, kinds), ", ".join(sorted(kinds))
            mistakes.append(f"{path}.{key}: unknown key.{hint} Allowed: {allowed}")
            continue
        try:
            values[key] = _converted(given, kinds[key])
        except ValueError as error:
            mistakes.append(f"{path}.{key}: {error}")
    return values


def _replaced(
    base: Settings, values: Mapping[str, Any], path: str, mistakes: list[str]
) -> Settings:
    """Return `base` with other values; what its own checks find is a mistake of the table."""
    try:
        return typing.cast("Settings", dataclasses.replace(typing.cast("Any", base), **values))
    except InvalidConfigError as error:
        mistakes += [f"{path}.{mistake}" for mistake in error.mistakes]
    except (YardmasterError, ValueError) as error:
        mistakes.append(f"{path}: {error}")
    return base


def _converted(given: Any, kind: Any) -> Any:
    """Return a value read from TOML as the kind a setting wants.

    Raises:
        ValueError: if it is of another kind; the message says what would be right.
    """
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return _one_of(given, inside)
    if origin is typing.Literal:
        return _named(given, inside)
    if origin is tuple:
        return _row(given, inside)
    if origin is Mapping:
        if not isinstance(given, Mapping):
            raise _refusal("a table", given)
        return {key: _converted(item, inside[1]) for key, item in given.items()}
    if kind is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    if type(given) is not kind or (kind is float and math.isnan(given)):
        raise _refusal(_KINDS.get(kind, kind.__name__), given)
    return given


def _named(given: Any, names: Sequence[Any]) -> Any:
    if given not in names:
        hint = did_you_mean(str(given), names)
        raise ValueError(f"must be {' or '.join(map(repr, names))}, got {_shown(given)}.{hint}")
    return given


def _row(given: Any, kinds: Sequence[Any]) -> tuple[Any, ...]:
    """Return an array as a tuple: of one kind and any length, or of so many as there are kinds."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _refusal("an array", given)
    if kinds[-1] is Ellipsis:
        kinds = [kinds[0]] * len(given)
    if len(given) != len(kinds):
        raise ValueError(f"must be an array of {len(kinds)}, got {len(given)}")
    return tuple(_converted(item, kind) for item, kind in zip(given, kinds, strict=True))


def _one_of(given: Any, kinds: Sequence[Any]) -> Any:
    """Return a value as the first of several kinds that takes it."""
    if given == NONE and types.NoneType in kinds:
        return None
    complaints: list[str] = []
    for kind in kinds:
        if kind is types.NoneType:
            complaints.append(f'"{NONE}"')
            continue
        try:
            return _converted(given, kind)
        except ValueError as error:
            # Some settings may also be objects, which no file can hold.
            if kind in _KINDS or typing.get_origin(kind) is not None:
                wanted = str(error).partition(", got ")[0].removeprefix("must be ")
                is_of_item = typing.get_origin(kind) is tuple and not wanted.startswith("an array")
                complaints.append(f"an array, each {wanted}" if is_of_item else wanted)
    raise _refusal(" or ".join(complaints), given)


def _refusal(wanted: str, given: Any) -> ValueError:
    return ValueError(f"must be {wanted}, got {_shown(given)}")


def _shown(value: object) -> str:
    """Return a value for a message; tables and arrays only by kind."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "an array"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def table_of(settings: Any) -> dict[str, Any]:
    """Return settings as a table of plain values; what is left open becomes `"none"`."""
    table: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            table[field.name] = table_of(value)
        elif isinstance(value, tuple):
            table[field.name] = list(value)
        else:
            table[field.name] = NONE if value is None else value
    return table


def read_tables(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InvalidConfigError: if it cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        mistake = "there is no such file"
    except IsADirectoryError:
        mistake = "is a directory, not a TOML file"
    except OSError as error:
        mistake = f"cannot be read: {error.strerror}"
    except RecursionError:
        mistake = "is nested too deeply"
    except ValueError as error:  # not UTF-8, a syntax error, a number of too many digits
        mistake = f"is not valid TOML: {error}"
    raise InvalidConfigError(str(path), [mistake])


def to_toml(tables: Mapping[str, Any]) -> str:
    """Write tables of plain values, arrays and further tables as TOML."""
    return "\n\n".join(_blocks(tables, "")) + "\n"


def _blocks(table: Mapping[str, Any], path: str) -> list[str]:
    own = [
        f"{_key(k)} = {_value(v)}"
        for k, v in table.items()
        if not isinstance(v, Mapping) and not _is_tables(v)
    ]
    header = [f"[{path}]"] if path and (own or not table) else []
    blocks = ["\n".join(header + own)] if header or own else []
    for key, value in table.items():
        if isinstance(value, Mapping):
            blocks += _blocks(value, f"{path}.{_key(key)}" if path else _key(key))
        elif _is_tables(value):
            place = f"{path}.{_key(key)}" if path else _key(key)
            blocks += [
                "\n".join([f"[[{place}]]", *(f"{_key(k)} = {_value(v)}" for k, v in one.items())])
                for one in value
            ]
    return blocks


def _is_tables(value: Any) -> bool:
    """Whether a value is an array of tables."""
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _key(name: str) -> str:
    is_bare = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if is_bare else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # A JSON string is a TOML string, but for the one control character JSON leaves alone.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{{inside}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML has no word for {value!r}")
