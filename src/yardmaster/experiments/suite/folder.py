"""The folder of an experiment: what is where.

```
experiment.toml    the document, every default written out
runs.sqlite        every run made so far, by what it was made from (see `store`)
results.parquet    the table: one row per run, always the same bytes for the same runs
failures.json      runs that could not be made, and why; only if there are any
timings.json       what the runs cost; not reproducible, so not in the table
```

It grows in place: what a killed experiment leaves is where the next one goes on.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.document import Suite, load_suite
from yardmaster.experiments.training.folder import write_whole

HALF_WRITTEN = ".*.unfinished"


class SuiteFolder:
    """The paths of an experiment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document = path / "experiment.toml"
        self.store = path / "runs.sqlite"
        self.results = path / "results.parquet"
        self.failures = path / "failures.json"
        self.timings = path / "timings.json"
        self._lock = path / ".lock"

    def suite(self) -> Suite:
        """Return the experiment that lives here.

        Raises:
            YardmasterError: if none does.
        """
        if not self.document.is_file():
            raise YardmasterError(
                f"{self.path} is not the folder of an experiment: it has no {self.document.name}."
            )
        return load_suite(self.document)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder if need be, and keep all other processes out; death lets go of it too.

        Raises:
            YardmasterError: if somebody works here already, something else than an experiment
                lives here, or it cannot be written.
        """
        self._refuse_other_things()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = self._lock.open("a", encoding="utf-8")
        except OSError as error:
            raise YardmasterError(f"Cannot write to {self.path}: {error.strerror}.") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise YardmasterError(f"Another process is at work in {self.path}.") from None
            for left_behind in self.path.glob(HALF_WRITTEN):
                left_behind.unlink()
            yield

    def _refuse_other_things(self) -> None:
        if self.document.is_file() or not self.path.exists():
            return
        # A process killed in its first moments leaves its lock, and perhaps a file half written.
        ours = {self._lock, *self.path.glob(HALF_WRITTEN)}
        if not self.path.is_dir() or not ours.issuperset(self.path.iterdir()):
            raise YardmasterError(
                f"{self.path} already exists and is not the folder of an experiment; choose"
                " another place with --out."
            )

    def take_up(self, suite: Suite, *, overwrite: bool) -> None:
        """Make the folder the one of this experiment, which may live here already.

        With `overwrite`, another experiment may take its place; runs that both have in common
        are not made again. The folder must be held.

        Raises:
            YardmasterError: if another experiment lives here, or it cannot be written.
        """
        if self.document.is_file():
            is_same = self.suite() == suite
            if not is_same and not overwrite:
                raise YardmasterError(
                    f"{self.path} holds another experiment (see {self.document.name}). Choose"
                    " another place with --out; or --overwrite it, which keeps the runs that both"
                    " have in common."
                )
            if is_same:
                return
        try:
            # Never this document beside the table of another one.
            for outdated in (self.results, self.failures, self.timings):
                outdated.unlink(missing_ok=True)
            write_whole(self.document, suite.to_toml())
        except OSError as error:
            raise YardmasterError(f"Cannot write to {self.path}: {error.strerror}.") from None
