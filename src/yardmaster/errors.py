"""What can go wrong, in the user's words. Every error a user can cause is a `YardmasterError`."""

from __future__ import annotations

from collections.abc import Sequence


class YardmasterError(Exception):
    """Something the user can fix; the command line prints it without a traceback."""


class UnknownNameError(YardmasterError):
    """A name that is not registered; the message suggests the nearest ones."""


class InvalidWorkloadError(YardmasterError):
    """A job table that cannot be simulated; lists every mistake with its row."""


class InvalidClusterError(YardmasterError):
    """A cluster description that makes no sense."""


class InvalidConfigError(YardmasterError):
    """A configuration document with mistakes; lists all of them with their paths."""

    def __init__(self, where: str, mistakes: Sequence[str]) -> None:
        self.where = where
        self.mistakes = tuple(mistakes)
        plural = "mistake" if len(self.mistakes) == 1 else "mistakes"
        lines = "\n".join(f"  - {mistake}" for mistake in self.mistakes)
        super().__init__(f"{where}: {len(self.mistakes)} {plural}\n{lines}")


class EntitlementError(YardmasterError):
    """An order asked for a column its information class does not allow it to read."""


class TraceFormatError(YardmasterError):
    """A file that is not in the format it claims to be."""


class ConformanceError(YardmasterError):
    """A plug-in of the user's own breaks a promise that others rely on."""
