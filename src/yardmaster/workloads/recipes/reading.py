"""Processes as people write them: `name:key=value,…` in one line, or the table of a TOML file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from yardmaster.errors import InvalidConfigError, InvalidWorkloadError, YardmasterError
from yardmaster.names import unknown
from yardmaster.workloads.recipes.parameters import (
    SEPARATOR,
    AnyPart,
    Parameter,
    Part,
    parameters_of,
)


def written(part: Part) -> dict[str, Any]:
    """Return the parameters as they stand in a TOML file; nothing and no limit are left out."""
    values = {name: getattr(part, name) for name in parameters_of(type(part))}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in {None, "", math.inf}
    }


class Mistake(NamedTuple):
    """What is wrong with one parameter, or with several together (no name)."""

    name: str
    error: YardmasterError

    def at(self, path: str) -> str:
        """Say where and what, for a list of mistakes."""
        message = str(self.error)
        if not self.name:
            return f"{path}: {message}"
        # Messages begin with the parameter's name, perhaps with a place in a list behind it.
        begins = re.match(rf"{re.escape(self.name)}(\[\d+\])? ", message)
        place = (begins[1] or "") if begins else ""
        return f"{path}.{self.name}{place}: {message[begins.end() if begins else 0 :]}"


def built(
    part: type[AnyPart], given: Mapping[str, Any], *, in_one_line: bool
) -> tuple[AnyPart | None, list[Mistake]]:
    """Build a process from what the user wrote, or list everything that is wrong.

    Args:
        part: the process.
        given: parameter → value, as text if `in_one_line`.
        in_one_line: whether the values come from `name:key=value,…`.
    """
    declared = parameters_of(part)
    mistakes: list[Mistake] = []
    values: dict[str, Any] = {}
    for name, value in given.items():
        try:
            values[name] = _value(declared, name, value, in_one_line=in_one_line)
        except YardmasterError as error:
            mistakes.append(Mistake(name, error))
    mistakes += [
        Mistake(name, InvalidWorkloadError(f"{name} is required: {parameter.meaning}."))
        for name, parameter in declared.items()
        if parameter.required and name not in given
    ]
    if mistakes:
        return None, mistakes
    try:
        return part(**values), []
    except InvalidConfigError as error:
        return None, [Mistake("", InvalidWorkloadError(text_)) for text_ in error.mistakes]
    except YardmasterError as error:
        return None, [Mistake("", error)]


def _value(declared: Mapping[str, Parameter], name: str, value: Any, *, in_one_line: bool) -> Any:
    if name not in declared:
        raise unknown("key", name, declared)
    if in_one_line:
        try:
            value = declared[name].from_text(value)
        except ValueError:
            raise InvalidWorkloadError(
                f"{name} must be a {declared[name].kind}, got {value!r}."
            ) from None
    return declared[name].checked(name, value)


def split_options(text_: str) -> dict[str, str]:
    """Split `low=1,high=8` into names and values.

    Raises:
        InvalidWorkloadError: if an option has no name or value, or is there twice.
    """
    found: dict[str, str] = {}
    for option in text_.split(","):
        name, sign, value = (piece.strip() for piece in option.partition("="))
        if not sign or not name or not value or name in found:
            raise InvalidWorkloadError(
                f"Cannot read {text_.strip()!r}: write every option once, such as low=1,high=8;"
                f" values of a list are joined by {SEPARATOR!r}."
            )
        found[name] = value
    return found
