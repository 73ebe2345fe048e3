"""What a policy sees and may do: the part of a task that travels with a trained policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from yardmaster.engine.picking import other_features as other
from yardmaster.engine.picking import places as at
from yardmaster.engine.picking.features import CARDS, GLOBAL_FEATURES, JOB_FEATURES
from yardmaster.engine.picking.layout import Layout
from yardmaster.engine.picking.places import Features, Lookahead, NoOp, Pace
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import FloatArray, IntArray
from yardmaster.names import unknown

SCHEMA = 1
"""Version of the observation: what the numbers of each feature set mean."""

INFORMATION = ("clairvoyant", "estimate", "blind")
DAY_S = 86_400.0
LONGEST_S = 30 * DAY_S
"""Run time at which the standard `run_time` feature reaches 1, seconds."""


def names_of(kind: type[Features | Lookahead | NoOp | Pace]) -> tuple[str, ...]:
    """Return the names users write for the choices of a kind."""
    return tuple(choice.name.lower() for choice in kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a policy sees of the queue and the cluster, and when it is asked."""

    window: int = 64
    """Waiting jobs shown, first in `window_order`."""
    window_order: str = "fifo"
    """Order of the window; any order of the scheduler language."""
    features: str = "standard"
    """standard | gpu_optimizer | drl_scheduler | rltune."""
    information: str = "clairvoyant"
    """Run times the policy is shown: clairvoyant (true), estimate, or blind (none)."""
    lookahead: str = "cdf"
    """What the GPU slots tell: off | per_gpu | sorted | cdf; the shape is the same."""
    gpu_slots: int = 32
    """GPU slots; clusters with more GPUs share them evenly."""
    ranks: tuple[str, ...] = ()
    """Orders whose rank of each job, within the window, is shown as a feature."""
    reservation: bool = True
    """Whether tokens tell what would delay the first blocked job (needs run times)."""
    noop: str = "when_blocked"
    """When waiting may be chosen though a job fits: never | when_blocked | always."""
    pace: str = "decision"
    """When the policy is asked: decision | event | tick | commit."""
    placement: str = "pack"
    time_unit_s: float = 3600.0
    """Seconds that count as long: features show t / (t + unit)."""
    longest_s: float = LONGEST_S
    tick_s: float = 1.0
    span_factor: float = 1.3
    """Waits of the gpu_optimizer features are divided by the last submission plus this many times
    all work by all GPUs, as that program does; it knows the future by it."""
    masked: bool = True
    """False: every action is legal, and what makes no sense does nothing."""

    def __post_init__(self) -> None:
        check_kinds(self)
        _check_choice("features", self.features, names_of(Features))
        _check_choice("information", self.information, INFORMATION)
        _check_choice("lookahead", self.lookahead, names_of(Lookahead))
        _check_choice("noop", self.noop, names_of(NoOp))
        _check_choice("pace", self.pace, names_of(Pace))
        for name in ("window", "time_unit_s", "longest_s", "tick_s", "span_factor"):
            if not getattr(self, name) > 0:
                raise YardmasterError(f"{name} must be positive, got {getattr(self, name)}.")
        if self.gpu_slots < 0:
            raise YardmasterError(f"gpu_slots must be 0 or more, got {self.gpu_slots}.")
        if self.ranks and self.features != "standard":
            raise YardmasterError("ranks are shown by the standard features only.")

    @property
    def knows_run_times(self) -> bool:
        """Whether the policy is shown run times, true or estimated."""
        return self.information != "blind"

    @property
    def reserves(self) -> bool:
        """Whether tokens tell of the first blocked job's reservation."""
        return self.reservation and self.knows_run_times and self.features == "standard"

    def to_table(self) -> dict[str, Any]:
        """Return plain values, for a policy file."""
        return asdict(self) | {"ranks": list(self.ranks), "schema": SCHEMA}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Sight:
        """Read back what `to_table` gave.

        Raises:
            YardmasterError: if the observation is of another version, or a name is unknown.
        """
        values = dict(table)
        schema = values.pop("schema", SCHEMA)
        if schema != SCHEMA:
            raise YardmasterError(
                f"The policy was trained on version {schema} of the observation; this is"
                f" version {SCHEMA}. Train it again, or use the release it was made with."
            )
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise unknown("setting of what a policy sees", name, known)
        return cls(**(values | {"ranks": tuple(values.get("ranks", ()))}))

    def layout(self) -> Layout:
        """Return where everything stands in the observation."""
        if self.features == "gpu_optimizer":
            size = 4 * self.window
            return Layout(
                window=self.window,
                job_features=other.GPU_OPTIMIZER_JOB,
                gpu_slots=self.gpu_slots,
                global_features=other.GPU_OPTIMIZER_GLOBALS,
                jobs_at=0,
                gpus_at=size,
                globals_at=(size + self.gpu_slots, size + self.gpu_slots + 1),
            )
        if self.features == "drl_scheduler":
            return Layout(
                window=self.window,
                job_features=other.DRL_SCHEDULER_JOB,
                gpu_slots=0,
                global_features=other.DRL_SCHEDULER_GLOBALS,
                jobs_at=1,
                gpus_at=1 + 4 * self.window,
                globals_at=(0, 1 + 4 * self.window),
            )
        if self.features == "rltune":
            return Layout(
                window=self.window,
                job_features=other.RLTUNE_JOB,
                gpu_slots=0,
                global_features=(),
                jobs_at=0,
                gpus_at=7 * self.window,
                globals_at=(),
            )
        return self._standard_layout()

    def _standard_layout(self) -> Layout:
        job = JOB_FEATURES + tuple(f"rank_{name}" for name in self.ranks)
        size = len(job) * self.window
        count = len(GLOBAL_FEATURES)
        return Layout(
            window=self.window,
            job_features=job,
            gpu_slots=self.gpu_slots,
            global_features=GLOBAL_FEATURES,
            jobs_at=0,
            gpus_at=size,
            globals_at=tuple(range(size + self.gpu_slots, size + self.gpu_slots + count)),
        )

    def rules(self, *, is_fixed: bool) -> IntArray:
        """Return the row of integers the compiled functions read; see `places`."""
        layout = self.layout()
        rules = np.zeros(at.RULES, dtype=np.int64)
        rules[at.WINDOW] = self.window
        rules[at.TOKEN] = len(layout.job_features)
        rules[at.CARD] = CARDS
        rules[at.LENGTH] = layout.length
        rules[at.TOKENS_AT] = layout.jobs_at
        rules[at.SLOTS_AT] = layout.gpus_at
        rules[at.GLOBALS_AT] = layout.globals_at[0] if layout.globals_at else 0
        rules[at.SLOTS] = layout.gpu_slots
        rules[at.FEATURES] = Features[self.features.upper()]
        rules[at.LOOKAHEAD] = Lookahead[self.lookahead.upper()]
        rules[at.NOOP] = NoOp[self.noop.upper()]
        rules[at.PACE] = Pace[self.pace.upper()]
        rules[at.KNOWS] = self.knows_run_times
        rules[at.RESERVES] = self.reserves
        rules[at.PLACES_BESIDE] = self.reserves and self.pace == "decision"
        rules[at.RANKS] = len(self.ranks)
        rules[at.IS_FIXED] = is_fixed
        rules[at.IS_UNMASKED] = not self.masked
        return rules

    def scales(self) -> FloatArray:
        """Return the row of reals the compiled functions read, without a reward."""
        scales = np.zeros(at.SCALES)
        scales[at.TIME_UNIT_S] = self.time_unit_s
        scales[at.TICK_S] = self.tick_s
        scales[at.LONGEST_S] = self.longest_s
        return scales


_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
}


def check_kinds(settings: Any) -> None:
    """Refuse values of the wrong kind: files hold what people write.

    Raises:
        YardmasterError: if a number, name or switch is none.
    """
    for item in fields(settings):
        kind, value = str(item.type).removesuffix(" | None"), getattr(settings, item.name)
        if kind not in _KINDS or (value is None and str(item.type) != kind):
            continue
        is_switch = isinstance(value, bool) and kind != "bool"
        if is_switch or not isinstance(value, _KINDS[kind]):
            raise YardmasterError(f"{item.name} must be of kind {kind}, got {value!r}.")


def _check_choice(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise unknown(what, name, known)
