"""The document of an experiment: factors, whose every combination is run.

```toml
name = "mine"
schedulers = ["srpt+skip", "edf+skip", "policy:runs/train"]
seeds = 8                       # paired: every scheduler runs the same jobs

[[regimes]]
family = "rlmetadqn"            # see `yardmaster list regimes`
where = { shape = ["base", "bursty"], gpus = [4, 8] }
perturbations = ["arrival-noise", "capacity-dip"]    # each at its four severities

[[workloads]]
workload = "venus-like"         # a preset, a recipe or a file
cluster = "demo"
jobs = 2000
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w
from pydantic import Field, field_validator, model_validator

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.experiments.line_up import parse_schedulers
from yardmaster.experiments.suite.measuring import MIXED
from yardmaster.experiments.suite.settings import Label, OwnWorkload, Setting
from yardmaster.metrics.catalogue import METRIC_NAMES, metric
from yardmaster.model.documents import Document, read_toml, validate
from yardmaster.names import unknown
from yardmaster.schedulers.language import Scheduler, parse_scheduler
from yardmaster.workloads.regimes import PERTURBATIONS, Perturbation, regimes, severities

Disturbances = tuple[Perturbation | None, ...]


class Disturbed(Document):
    """What may go wrong with the settings of a table."""

    perturbations: tuple[str, ...] = ()
    """Kinds of perturbations, each alone; see `yardmaster list perturbations`."""
    severities: Mapping[str, tuple[float, ...]] = Field(default_factory=dict)
    """Kind → severities, where not the usual four."""
    clean: bool = True
    """Whether the undisturbed setting is run too."""

    @field_validator("perturbations")
    @classmethod
    def _are_known(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for kind in kinds:
            if kind not in PERTURBATIONS:
                raise ValueError(str(unknown("perturbation", kind, PERTURBATIONS)))
        return kinds

    @model_validator(mode="after")
    def _severities_are_used(self) -> Self:
        for kind in self.severities:
            if kind not in self.perturbations:
                raise ValueError(f"severities of {kind}, which is none of its perturbations")
        return self

    def disturbances(self) -> Disturbances:
        """Return every perturbation; None for the undisturbed setting."""
        found: list[Perturbation | None] = [None] if self.clean else []
        for kind in self.perturbations:
            own = self.severities.get(kind)
            found += severities(kind) if own is None else [Perturbation(kind, s) for s in own]
        return tuple(found)


class Regimes(Disturbed):
    """Some regimes of a family."""

    family: str
    names: tuple[str, ...] | None = None
    """Only these; by default all."""
    where: Mapping[str, tuple[Label, ...]] = Field(default_factory=dict)
    """Only those whose labels have one of these values."""

    def settings(self) -> list[Setting]:
        """Return the regimes.

        Raises:
            UnknownNameError: if there is no such family, regime or label.
            InvalidConfigError: if none is left.
        """
        every = regimes(self.family)
        known = [regime.name for regime in every]
        for name in self.names or ():
            if name not in known:
                raise unknown(f"regime of {self.family}", name, known)
        labels = sorted({label for regime in every for label in regime.labels})
        for label in self.where:
            if label not in labels:
                raise unknown(f"label of {self.family}", label, labels)
        found: list[Setting] = [
            regime
            for regime in every
            if (self.names is None or regime.name in self.names)
            and all(regime.labels.get(label) in allowed for label, allowed in self.where.items())
        ]
        if not found:
            raise InvalidConfigError(
                f"regimes of {self.family}", ["where: no regime has these labels"]
            )
        return found


class Workloads(Disturbed):
    """A workload of the user's own, on machines of their own."""

    workload: str
    """A preset, a recipe or a file."""
    cluster: str
    """A named cluster, a TOML file, or groups such as `8x A100:8`."""
    name: str | None = None
    """Name for tables; by default made of workload and cluster."""
    jobs: int | None = Field(default=None, ge=1)
    load: float | None = Field(default=None, gt=0)
    labels: Mapping[str, Label] = Field(default_factory=dict)

    def setting(self) -> OwnWorkload:
        """Return it as a setting."""
        name = self.name or f"{self.workload} on {self.cluster}"
        return OwnWorkload(
            name, self.workload, self.cluster, self.jobs, self.load, dict(self.labels)
        )


class Suite(Document):
    """An experiment of many runs, fully stated."""

    schema_version: Literal[1] = 1
    """Version of this document; raised when its meaning changes."""
    name: str = Field(min_length=1)
    description: str = ""
    schedulers: tuple[str, ...] = Field(min_length=1)
    seeds: int = Field(default=8, ge=1, le=10_000)
    """Workloads drawn from every setting; all schedulers run the same ones."""
    first_seed: int = Field(default=0, ge=0)
    objectives: tuple[str, ...] = ("mean_jct_s", "p95_jct_s", "mean_bounded_slowdown")
    """Metrics whose distance to the best scheduler in hindsight is reported; lower is better."""
    until_s: float | None = Field(default=None, ge=0)
    """Cut every run after this second of its clock."""
    regimes: tuple[Regimes, ...] = ()
    workloads: tuple[Workloads, ...] = ()

    @field_validator("objectives")
    @classmethod
    def _can_be_minimised(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name == MIXED:
                continue
            if name not in METRIC_NAMES:
                raise ValueError(str(unknown("metric", name, (*METRIC_NAMES, MIXED))))
            if metric(name).better != "lower":
                raise ValueError(f"{name} is no metric of which less is better")
        return names

    def settings(self) -> Iterator[tuple[Setting, Disturbances]]:
        """Yield every setting with what goes wrong in it.

        Raises:
            YardmasterError: if a name is unknown, or two settings share one.
        """
        seen: dict[tuple[str, str], object] = {}
        parts = [(setting, part) for part in self.regimes for setting in part.settings()]
        own = [(part.setting(), part) for part in self.workloads]
        for setting, part in (*parts, *own):
            name = (setting.family, setting.name)
            if seen.setdefault(name, setting) is not setting:
                raise InvalidConfigError(self.name, [f"two workloads are called {setting.name!r}"])
            yield setting, part.disturbances()

    def files(self) -> dict[str, Path]:
        """Return the files of jobs and machines that it names, by the path written."""
        every = [part.setting().files() for part in self.workloads]
        return {name: path for files in every for name, path in files.items()}

    def seeds_of(self, setting: Setting) -> range:
        """Return the seeds to draw jobs with; a file has one workload whatever the seed."""
        is_fixed = isinstance(setting, OwnWorkload) and not setting.is_drawn
        return range(self.first_seed, self.first_seed + (1 if is_fixed else self.seeds))

    def parsed_schedulers(self) -> list[Scheduler]:
        """Return the schedulers.

        Raises:
            YardmasterError: with every name that cannot be read.
        """
        return parse_schedulers(self.schedulers)

    def refuse_mistakes(self, where: str) -> None:
        """Make sure that every name means something: one of many runs is late to find that out.

        Workloads of the user's own are drawn, or read, once.

        Args:
            where: the file, for the message.

        Raises:
            InvalidConfigError: with every entry that cannot be used.
        """
        tries: list[tuple[str, Callable[[], object]]] = [
            (f"schedulers[{place}]", partial(parse_scheduler, name))
            for place, name in enumerate(self.schedulers)
        ]
        tries += [(f"regimes[{place}]", part.settings) for place, part in enumerate(self.regimes)]
        parts: dict[str, tuple[Disturbed, ...]] = {
            "regimes": self.regimes, "workloads": self.workloads
        }  # fmt: skip
        tries += [
            (f"{name}[{place}].severities", part.disturbances)
            for name, several in parts.items()
            for place, part in enumerate(several)
        ]
        mistakes = [mistake for entry in tries for mistake in _mistakes(*entry)]
        for place, part in enumerate(self.workloads):
            own = part.setting()
            mistakes += _mistakes(f"workloads[{place}].cluster", own.machines) or _mistakes(
                f"workloads[{place}].workload", partial(own.jobs, self.first_seed)
            )
        if mistakes:
            raise InvalidConfigError(where, mistakes)

    def with_changes(self, **changes: Any) -> Suite:
        """Return the document with some factors replaced; None leaves one as it is."""
        given = {key: value for key, value in changes.items() if value is not None}
        return validate(Suite, self.tables() | given, f"experiment {self.name}")

    def tables(self) -> dict[str, Any]:
        """Return the document as a TOML file holds it."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_toml(self) -> str:
        """Return the document as text, every default written out."""
        return tomli_w.dumps(self.tables())


def _mistakes(entry: str, attempt: Callable[[], object]) -> list[str]:
    """Return what is wrong with an entry of the document."""
    try:
        attempt()
    except InvalidConfigError as error:  # of another file, with a mistake a line
        return [f"{entry}: {error.where}: {mistake}" for mistake in error.mistakes]
    except YardmasterError as error:
        return [f"{entry}: {error}"]
    return []


@cache
def _shipped() -> dict[str, Traversable]:
    folder = resources.files("yardmaster.experiments.suite").joinpath("data")
    files = [file for file in folder.iterdir() if file.name.endswith(".toml")]
    return {file.name.removesuffix(".toml"): file for file in files}


def suite_names() -> tuple[str, ...]:
    """Return the names of the experiments that come with Yardmaster, sorted."""
    return tuple(sorted(_shipped()))


def load_suite(source: str | Path) -> Suite:
    """Read an experiment by name, or from a TOML file.

    Raises:
        UnknownNameError: if there is neither a file nor an experiment of the name.
        InvalidConfigError: with everything that is wrong in the file.
    """
    name = str(source)
    if name in _shipped():
        return _checked(tomllib.loads(_shipped()[name].read_text("utf-8")), name)
    if isinstance(source, str) and not name.endswith(".toml") and not Path(name).exists():
        raise unknown("experiment", name, _shipped())
    return _checked(read_toml(source), name)


def _checked(data: dict[str, Any], where: str) -> Suite:
    suite = validate(Suite, data, where)
    if not suite.regimes and not suite.workloads:
        raise InvalidConfigError(where, ["needs [[regimes]] or [[workloads]] to run"])
    return suite
