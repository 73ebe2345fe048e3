"""What the user says about a trace that the trace does not say itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from yardmaster.errors import InvalidWorkloadError, UnknownNameError
from yardmaster.names import did_you_mean


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user says about a trace.

    Attributes:
        time_zone: name of the zone of dates written without one, such as `America/Los_Angeles`;
            None takes them as written, without daylight saving.
        slot_cores: cores that make one slot, where jobs ask for cores and not for GPUs; None for
            the format's own rule.
        skip_bad_rows: drop and count rows that cannot be read instead of refusing the file.
        columns: canonical column → column of the file, for tables of one's own.
        separator: what stands between the cells of a table of one's own.
    """

    time_zone: str | None = None
    slot_cores: float | None = None
    skip_bad_rows: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str = ","

    def __post_init__(self) -> None:
        if self.time_zone is not None:
            self.winter_offset_s()
        if self.slot_cores is not None and not 0 < self.slot_cores < 1e9:
            raise InvalidWorkloadError(f"slot_cores must be above 0, got {self.slot_cores!r}.")
        if len(self.separator) != 1:
            raise InvalidWorkloadError(f"separator must be one character, got {self.separator!r}.")

    def winter_offset_s(self) -> float:
        """Return how far the zone is ahead of UTC without daylight saving, in seconds.

        Raises:
            UnknownNameError: if there is no such zone.
        """
        if self.time_zone is None:
            return 0.0
        try:
            zone = ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            hint = did_you_mean(self.time_zone, sorted(available_timezones()))
            raise UnknownNameError(f"Unknown time zone {self.time_zone!r}.{hint}") from None
        offsets = [datetime(2001, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)]
        return min(offset.total_seconds() for offset in offsets if offset is not None)

    def zone_in_words(self, written: str) -> str:
        """Return what the account says of the clock.

        Args:
            written: what the format says of the zone, such as `Pacific, as written`.
        """
        if self.time_zone is None:
            return written
        return f"{self.time_zone}, on winter time all year"
