"""A workload's clock in words: moments and lengths of time as people write them, and weekdays.

A moment is a second of the clock (`86400`), a time since its second 0 (`3d`, `2w`, `1d12h`), or,
where the workload knows when it begins, a local date (`2020-05-01`, `2020-05-01T12:00`).
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

from yardmaster.errors import InvalidWorkloadError
from yardmaster.model.workload import Workload

Moment = float | str
"""A second of the clock, or what `second_of` reads."""

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3_600.0, 86_400.0, 604_800.0
UNITS_S = {"s": 1.0, "min": MINUTE_S, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}
"""Units a length of time may be written in."""
_LENGTH = re.compile(r"(?:\d+(?:\.\d*)?\s*(?:min|s|m|h|d|w)\s*)+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d*)?)\s*(min|s|m|h|d|w)", re.ASCII)
_DATE = re.compile(r"\d{4}-")


def length_s(text: Moment, *, what: str = "a length of time") -> float:
    """Return a length of time such as `90`, `3d` or `1d12h` in seconds.

    Args:
        text: seconds, or numbers with units (`s`, `min`, `h`, `d`, `w`).
        what: what the length is of, for the message.

    Raises:
        InvalidWorkloadError: if it is not such a length, or negative.
    """
    seconds = _read_length(text)
    if seconds is None:
        raise InvalidWorkloadError(
            f"{what} must be a time such as 90, 12h, 3d or 2w, got {text!r}."
        )
    return seconds


def second_of(workload: Workload, moment: Moment) -> float:
    """Return the second of the workload's clock that `moment` means.

    Raises:
        InvalidWorkloadError: if it cannot be read, or is a date and the workload knows none.
    """
    seconds = _read_length(moment)
    if seconds is not None:
        return seconds
    if not (isinstance(moment, str) and _DATE.match(moment)):
        raise InvalidWorkloadError(
            f"A moment must be a second, a time such as 12h, 3d or 2w, or a date such as"
            f" 2020-05-01 or 2020-05-01T12:00; got {moment!r}."
        )
    begins = beginning(workload)
    if begins is None:
        raise InvalidWorkloadError(
            f"{workload.name} does not know the date of its second 0, so {moment!r} cannot be"
            " found; give seconds, or a time since second 0 such as 3d or 2w."
        )
    return (_date(moment) - begins).total_seconds()


def beginning(workload: Workload) -> datetime | None:
    """Return the local date and time of second 0, None where nobody knows.

    Raises:
        InvalidWorkloadError: if the workload's `begins` is no date.
    """
    if not workload.begins:
        return None
    try:
        return datetime.fromisoformat(workload.begins).replace(tzinfo=None)
    except ValueError:
        message = f"{workload.name} begins at {workload.begins!r}, which is not a date."
        raise InvalidWorkloadError(message) from None


def since_monday_s(workload: Workload) -> float:
    """Return the seconds from Monday midnight to second 0; 0 where the date is unknown."""
    begins = beginning(workload)
    if begins is None:
        return 0.0
    midnight = begins.replace(hour=0, minute=0, second=0, microsecond=0)
    return begins.weekday() * DAY_S + (begins - midnight).total_seconds()


def date_of(workload: Workload, second: float) -> str:
    """Return a second's local date and time to the second, "" where the date is unknown."""
    begins = beginning(workload)
    if begins is None:
        return ""
    try:
        return (begins + timedelta(seconds=math.floor(second))).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:  # beyond the year 9999
        return ""


def in_words(workload: Workload, second: float) -> str:
    """Return a moment for a message: its second, and its date where that is known."""
    date = date_of(workload, second)
    return f"second {second:.15g}" + (f" ({date})" if date else "")


def covered(workload: Workload) -> str:
    """Say when the first and the last job are submitted."""
    first, last = float(workload.submit_s[0]), float(workload.submit_s[-1])
    return (
        f"the {len(workload):,} jobs of {workload.name} are submitted from"
        f" {in_words(workload, first)} to {in_words(workload, last)}"
    )


def _read_length(text: Moment) -> float | None:
    """Return seconds of a number or of numbers with units, None if the text is neither."""
    try:
        seconds = float(text)
    except ValueError:
        tidy = str(text).strip().lower()
        if not _LENGTH.fullmatch(tidy):
            return None
        seconds = sum(float(amount) * UNITS_S[unit] for amount, unit in _PART.findall(tidy))
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _date(text: str) -> datetime:
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidWorkloadError(
            f"{text!r} is not a date; write 2020-05-01 or 2020-05-01T12:00."
        ) from None
    if date.tzinfo is not None:
        raise InvalidWorkloadError(f"{text!r} has a time zone; write the trace's local time.")
    return date
