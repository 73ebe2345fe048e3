"""Names a user types, and what to say when one is misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from yardmaster.errors import UnknownNameError

Value = TypeVar("Value")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest known name, or an empty string."""
    spellings = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), list(spellings), n=2, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(spellings[key]) for key in close)}?" if close else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Build the error for a name nobody registered, with suggestions and the full list."""
    names = sorted(known)
    hint = did_you_mean(name, names)
    return UnknownNameError(f"Unknown {kind} {name!r}.{hint} Known: {', '.join(names) or 'none'}.")


class Registry(Mapping[str, Value], Generic[Value]):
    """Named things of one kind, looked up with suggestions when the name is wrong."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, Value] = {}

    def add(self, name: str, value: Value) -> Value:
        """Register `value` under `name`; a second registration replaces the first."""
        self._items[name] = value
        return value

    def __getitem__(self, name: str) -> Value:
        if name not in self._items:
            raise unknown(self.kind, name, self._items)
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
