"""Documents people write: TOML files, read at the edge and checked whole.

`read_toml` and `validate` serve every kind of document. A document with mistakes is refused with
*all* of them at once, each with its path (`nodes[1].gpu_type`) and what would be allowed there.
Pydantic stays in the documents: what they turn into are the plain objects of the model.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, get_args

import pydantic
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from yardmaster.errors import InvalidConfigError
from yardmaster.names import did_you_mean


class Document(pydantic.BaseModel):
    """A part of a document: unknown keys, wrong types, NaN and infinity are mistakes."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False
    )


NESTED_TOO_DEEPLY = "is nested too deeply"
AnyDocument = TypeVar("AnyDocument", bound=pydantic.BaseModel)


def read_toml(path: str | Path | Traversable) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InvalidConfigError: if it cannot be opened, is not UTF-8 text, or is not TOML.
    """
    text = _read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        mistake = NESTED_TOO_DEEPLY
    except ValueError as error:  # a syntax error, or a number of more digits than Python reads
        mistake = f"is not valid TOML: {error}{_quoted_line(text, str(error))}"
    raise InvalidConfigError(str(path), [mistake])


def _read_text(path: str | Path | Traversable) -> str:
    file = Path(path) if isinstance(path, str) else path
    try:
        return file.read_bytes().decode("utf-8-sig")  # Windows editors put a mark before UTF-8
    except FileNotFoundError:
        mistake = "there is no such file"
    except IsADirectoryError:
        mistake = "is a directory, not a TOML file"
    except OSError as error:
        mistake = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        mistake = f"is not UTF-8 text: byte 0x{error.object[error.start]:02x} in line {line}"
    except ValueError as error:  # a name no file can have
        mistake = f"cannot be read: {error}"
    raise InvalidConfigError(str(path), [mistake])


def _quoted_line(text: str, complaint: str) -> str:
    """Return the line a syntax error points to, ready to append to the complaint."""
    found = re.search(r"at line (\d+)", complaint)
    return f": {text.split(chr(10))[int(found[1]) - 1].strip()[:80]!r}" if found else ""


def validate(document: type[AnyDocument], data: Mapping[str, Any], where: str) -> AnyDocument:
    """Check data read from TOML against a document class.

    Validators find the whole raw document in their context, under `"document"`.

    Args:
        document: what the data should be.
        data: what `read_toml` returned.
        where: the file's name, for messages.

    Raises:
        InvalidConfigError: with every mistake found, each with its path.
    """
    try:
        # Only from JSON is Pydantic strict about numbers and text and still turns arrays into
        # tuples, and text into paths and enumerations.
        return document.model_validate_json(to_json(data), context={"document": data})
    except PydanticSerializationError:
        mistakes = [NESTED_TOO_DEEPLY]
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)
        mistakes = [_mistake(document, data, detail) for detail in details]
    raise InvalidConfigError(where, mistakes)


def _mistake(
    document: type[pydantic.BaseModel], data: Mapping[str, Any], error: ErrorDetails
) -> str:
    """Say in one line where the mistake is, what it is, and what would be right."""
    path = _path(error["loc"], data)
    given, context = error["input"], error.get("ctx", {})
    match error["type"]:
        case "missing":
            text = "is required"
        case "extra_forbidden":
            allowed = sorted(_known_keys(document, error["loc"][:-1]))
            hint = did_you_mean(str(error["loc"][-1]), allowed)
            text = f"unknown key.{hint} Allowed: {', '.join(allowed)}"
        case "json_invalid":  # what `to_json` wrote can be wrong in no other way
            text = NESTED_TOO_DEEPLY
        case "value_error":
            text = str(context["error"])
        case "union_tag_invalid":
            hint = did_you_mean(context["tag"], _quoted(context["expected_tags"]))
            text = f"unknown {context['discriminator']} {context['tag']!r}.{hint}"
            text += f" Allowed: {context['expected_tags']}"
        case _:
            must = (
                error["msg"].replace("Input should be", "must be").replace("an object", "a table")
            )
            hint = did_you_mean(str(given), _quoted(str(context.get("expected", ""))))
            text = f"{must}, got {_shown(given)}{'.' if hint else ''}{hint}"
    return f"{path}: {text}" if path else text


def _quoted(text: str) -> list[str]:
    """Return the names that stand in single quotes."""
    return re.findall(r"'([^']*)'", text)


def _shown(value: object) -> str:
    """Return a value for a message; tables and arrays only by kind."""
    kinds = {dict: "a table", list: "an array", bool: str(value).lower()}
    return kinds.get(type(value)) or repr(value)


def _path(location: tuple[int | str, ...], data: Any) -> str:
    """Write a location as `nodes[1].gpu_type`.

    Pydantic adds the tag of a chosen alternative to its locations; tags are no keys of the
    document, so they are left out.
    """
    path = ""
    for depth, part in enumerate(location, start=1):
        if isinstance(part, int):
            path += f"[{part}]"
            data = data[part] if isinstance(data, list) and part < len(data) else None
        elif isinstance(data, Mapping) and (part in data or depth == len(location)):
            path += f".{part}"
            data = data.get(part)
    return path.removeprefix(".")


def _known_keys(document: type[pydantic.BaseModel], location: tuple[int | str, ...]) -> set[str]:
    """Return the keys allowed in the table at a location."""
    tables = [document]
    for part in location:
        fields = {name: field for table in tables for name, field in table.model_fields.items()}
        if part in fields:
            tables = list(_tables_in(fields[part].annotation))
        elif isinstance(part, str):  # a key of a mapping, or the tag that chose an alternative
            tables = [table for table in tables if _has_tag(table, part)] or tables
    return {name for table in tables for name in table.model_fields}


def _tables_in(annotation: Any) -> Iterator[type[pydantic.BaseModel]]:
    """Return the documents mentioned in a type such as `tuple[Nodes, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables_in(argument)


def _has_tag(table: type[pydantic.BaseModel], tag: str) -> bool:
    return any(tag in get_args(field.annotation) for field in table.model_fields.values())
