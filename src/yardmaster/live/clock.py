"""The clock of a live run: seconds since it began, the same before and after a crash."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LiveClock:
    """Seconds since the begin of a run; goes on evenly when somebody sets the machine's clock.

    Attributes:
        began_unix_s: when the run began, seconds since 1970; kept in `live.json`.
    """

    began_unix_s: float
    _offset_s: float = field(default=0.0)

    @classmethod
    def since(cls, began_unix_s: float) -> LiveClock:
        """Return the clock of a run that began then."""
        return cls(began_unix_s, time.time() - began_unix_s - time.monotonic())

    def time_s(self) -> float:
        """Return seconds since the begin."""
        return time.monotonic() + self._offset_s

    def of_unix(self, unix_s: float) -> float:
        """Return the second of the run at which the machine's clock showed this."""
        return self.time_s() - (time.time() - unix_s)
