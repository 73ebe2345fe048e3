"""Choosers by name: `meta:PATH` for trained ones, `bandit:NAME` for those that learn on the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from yardmaster.engine.choosing.sight import DEFAULT_MENU, ChoiceSight
from yardmaster.engine.picking.layout import Floats
from yardmaster.errors import YardmasterError
from yardmaster.names import did_you_mean
from yardmaster.schedulers.meta.bandits import BANDITS, Bandit
from yardmaster.schedulers.meta.chooser_file import PackedNet, packed, read_chooser

META_PREFIX = "meta:"
BANDIT_PREFIX = "bandit:"
SHIPPED = Path(__file__).parent / "shipped"
"""Trained choosers that come with Yardmaster, by name."""
BANDIT_EVERY_S = 30.0
"""Least seconds between two decisions of a bandit: what it chose must show before it is judged."""


class Chooser(Protocol):
    """Something that chooses among the schedulers of a menu."""

    @property
    def sight(self) -> ChoiceSight:
        """Its menu, and what it sees."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedChooser:
    """A trained chooser, ready to run without torch."""

    path: Path
    sight: ChoiceSight
    net: PackedNet
    labels: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Regime → what the chooser is told of it, if it is told in which regime it is."""

    def told(self, regime: str) -> tuple[float, ...]:
        """Return what it is told while it schedules the jobs of a regime.

        Raises:
            YardmasterError: if it must be told, and nobody knows the regime.
        """
        if not self.sight.labels:
            return ()
        if regime not in self.labels:
            raise YardmasterError(
                f"{self.path} was trained with the labels of its regimes, and {regime!r} is none of"
                f" them.{did_you_mean(regime, self.labels)}"
            )
        return tuple(self.labels[regime])


@dataclass(frozen=True, slots=True, eq=False)
class BanditChooser:
    """A chooser that knows nothing at first and learns while jobs run."""

    name: str
    sight: ChoiceSight
    begin: Callable[[int, int, int], Bandit]
    """(schedulers, numbers it sees, seed) → a fresh one."""


_read: dict[tuple[str, int, int], TrainedChooser] = {}
"""Choosers read before, by path, time of change and size: an experiment asks for one often."""


def shipped_names() -> list[str]:
    """Return the names of the trained choosers that come with Yardmaster."""
    return sorted(path.stem for path in SHIPPED.glob("*.npz"))


def chooser_path(name: str) -> Path:
    """Return the file that `meta:NAME` means: a shipped one, a file, or that of a run's folder."""
    if name in shipped_names():
        return SHIPPED / f"{name}.npz"
    path = Path(name).expanduser()
    return path if name.endswith(".npz") else path / "policy.npz"


def load_chooser(name: str, path: Path | None = None) -> TrainedChooser:
    """Read a trained chooser.

    Args:
        name: of a shipped one, or the path of a file or of a folder of `train`.
        path: where to read it from instead.

    Raises:
        YardmasterError: if there is none, or this version cannot run it.
    """
    path = path or chooser_path(name)
    try:
        there = path.stat()
    except OSError:
        hint = did_you_mean(name, shipped_names())
        raise YardmasterError(f"There is no trained chooser {name!r}.{hint}") from None
    key = (str(path.resolve()), there.st_mtime_ns, there.st_size)
    if key not in _read:
        file = read_chooser(path)
        try:
            labels = file.about.get("labels", {})
            _read[key] = TrainedChooser(path, file.sight, packed(file), labels)
        except YardmasterError as error:
            raise YardmasterError(f"{path}: {error}") from None
    return _read[key]


def bandit_chooser(text: str) -> BanditChooser:
    """Read `NAME` or `NAME=SCHEDULER/SCHEDULER/…`, what stands behind `bandit:`.

    A bandit is shown the run times that the schedulers of its menu read: true ones, estimates, or
    none if none of them reads any.

    Raises:
        UnknownNameError: if there is no such bandit.
    """
    name, equals, menu = text.partition("=")
    members = tuple(menu.split("/")) if equals else DEFAULT_MENU
    sight = ChoiceSight(menu=members, every_s=BANDIT_EVERY_S, past=0)
    sight = replace(sight, information=_read_by(members))
    return BanditChooser(name, sight, BANDITS[name].begin)


def _read_by(menu: Sequence[str]) -> str:
    """Return which run times the schedulers of a menu read, as `ChoiceSight` names them."""
    from yardmaster.schedulers.meta.menu import members_of
    from yardmaster.schedulers.views import RunTimes

    sources = {one.run_times for one in members_of(menu) if one.reads_run_times}
    if not sources:
        return "blind"
    return "estimate" if RunTimes.ESTIMATE in sources else "clairvoyant"


def seen_by(sight: ChoiceSight) -> Floats:
    """Return room for one observation."""
    return np.zeros(sight.layout().length, dtype=np.float32)
