"""Records in JSON: an array of objects, or one object per line, and where each stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.bad_rows import BadRows
from yardmaster.workloads.traces.reading.trace_files import TraceFile

_BLANK = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Record:
    """One object of a JSON file.

    Attributes:
        number: which of the file's records it is, from 1.
        line: the line on which it begins, from 1.
        content: the object.
    """

    number: int
    line: int
    content: dict[str, Any]


def is_array(file: TraceFile) -> bool:
    """Tell whether the file begins like a JSON array."""
    return file.head.lstrip()[:1] == b"["


def records(file: TraceFile, bad: BadRows) -> Iterator[Record]:
    """Yield the objects of an array, or of lines with one object each; note the others in `bad`.

    Nothing after the first damage to an array can be trusted, so that is an error, whatever the
    user wants to skip. A damaged line harms only itself.

    Raises:
        TraceFormatError: if the file is empty, or an array is damaged or cut off, naming the record
            and the line.
    """
    if not file.head.strip():
        raise TraceFormatError(f"{file.name}: the file is empty.")
    return _of_array(file, bad) if is_array(file) else _of_lines(file, bad)


def _of_array(file: TraceFile, bad: BadRows) -> Iterator[Record]:
    text = _text(file)
    end = len(text)
    place = _skipped(text, text.index("[") + 1)
    line, counted, number = 1, 0, 0
    while text[place : place + 1] != "]":
        number += 1
        line, counted = line + text.count("\n", counted, place), place
        try:
            content, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise _damage(file, text, number, line, error) from None
        if isinstance(content, dict):
            yield Record(number, line, content)
        else:
            bad.add(line, f"record {number} is {str(content)[:40]!r}, not an object")
        place = _skipped(text, place)
        if text[place : place + 1] == ",":
            place = _skipped(text, place + 1)
        elif text[place : place + 1] != "]":
            what = "ends" if place == end else f"goes on with {text[place : place + 20]!r}"
            raise TraceFormatError(
                f"{file.name}: the array {what} after record {number} (which begins on line {line})"
                " where `,` or `]` should be: it is damaged or cut off."
            )
    if text[place + 1 :].strip():
        line += text.count("\n", counted, place)
        raise TraceFormatError(
            f"{file.name}: something follows the array, which ends on line {line}."
        )


def _damage(
    file: TraceFile, text: str, number: int, line: int, error: Exception
) -> TraceFormatError:
    if isinstance(error, json.JSONDecodeError):
        rest = "the file ends in the middle of it" if error.pos >= len(text.rstrip()) else error.msg
        where = "" if error.lineno == line else f", broken on line {error.lineno}"
    else:
        rest, where = str(error)[:100], ""
    return TraceFormatError(
        f"{file.name}: record {number} (from line {line}{where}) is no JSON: {rest}."
    )


def _skipped(text: str, place: int) -> int:
    """Return the next place that is not blank."""
    while text[place : place + 1] and text[place] in _BLANK:
        place += 1
    return place


def _text(file: TraceFile) -> str:
    content = file.path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise TraceFormatError(f"{file.name}: line {line} is not UTF-8 text.") from None


def _of_lines(file: TraceFile, bad: BadRows) -> Iterator[Record]:
    number = 0
    with file.path.open("rb") as stream:
        for line, raw in enumerate(stream, start=1):
            content = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
            if not content.strip():
                continue
            number += 1
            try:
                record = json.loads(content.decode("utf-8"))
            except UnicodeDecodeError:
                bad.add(line, f"record {number} is not UTF-8 text")
            except (ValueError, RecursionError) as error:
                bad.add(line, f"record {number} is no JSON: {str(error)[:100]}")
            else:
                if isinstance(record, dict):
                    yield Record(number, line, record)
                else:
                    bad.add(line, f"record {number} is {str(record)[:40]!r}, not an object")
