"""What this Slurm can do, and every reason why its order must not be changed from outside."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass

from yardmaster.live.slurm.commands import Slurm, SlurmError
from yardmaster.live.slurm.factors import Scale
from yardmaster.workloads.traces.slurm.fields import duration_s

OLDEST, TESTED = (19, 5), (22, 5)
"""SiteFactor came with 19.05; this was tested against 22.05."""
MAY_CHANGE = ("Operator", "Administrator")
FEWEST_PLACES = 8
"""With fewer jobs that can be told apart, an order is not worth changing."""
LARGEST_SHARE = 0.5
"""Of PriorityMaxAge, how much a job may be advanced. Age counts no further than PriorityMaxAge: an
advance of that much would let newcomers pass a job however long it has waited."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What was found.

    Attributes:
        version: Slurm's version.
        cluster: its name.
        age_weight: PriorityWeightAge.
        max_age_s: PriorityMaxAge in seconds.
        calc_period_s: how often Slurm weighs all jobs, in seconds.
        ages_always: whether age counts from submission even while a job cannot run.
        refusals: every reason not to change the order; empty if it is safe.
        remarks: what one should know.
    """

    version: str
    cluster: str
    age_weight: int
    max_age_s: float
    calc_period_s: float
    ages_always: bool
    refusals: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def counts_age(self) -> bool:
        """Whether waiting is worth points, so that there can be a bound."""
        return self.age_weight > 0 and self.max_age_s > 0

    def scale(self, max_advance_s: float) -> Scale:
        """Return how far jobs may be moved."""
        return Scale(self.age_weight, self.max_age_s, max_advance_s)

    def refusals_for(self, max_advance_s: float) -> tuple[str, ...]:
        """Return every reason not to change the order with this starvation bound."""
        if not self.counts_age:
            return self.refusals
        found = list(self.refusals)
        most_s = LARGEST_SHARE * self.max_age_s
        if max_advance_s > most_s:
            found.append(
                f"max_advance_s is {max_advance_s:g}, but PriorityMaxAge is {self.max_age_s:g} s,"
                f" and waiting longer counts no more, so somebody could starve: use"
                f" --max-advance-s {most_s:g} or less, or raise PriorityMaxAge"
            )
        places = self.scale(max_advance_s).places
        if places < FEWEST_PLACES:
            found.append(
                f"only {places} waiting jobs could be told apart (PriorityWeightAge"
                f" {self.age_weight}, max_advance_s {max_advance_s:g}); at least {FEWEST_PLACES}"
                " are needed: raise PriorityWeightAge or --max-advance-s"
            )
        return tuple(found)

    def bound_in_words(self, max_advance_s: float) -> str:
        """Say the starvation bound."""
        if not self.counts_age:
            return "no bound: waiting does not count in this Slurm, so the order is not changed."
        scale = self.scale(max_advance_s)
        return (
            f"SiteFactor 0 to {scale.points}: no job is passed by one that has waited"
            f" {max_advance_s:g} s less (PriorityWeightAge {self.age_weight} ×"
            f" {max_advance_s:g} s / PriorityMaxAge {self.max_age_s:g} s), all else equal and while"
            f" neither has waited {self.max_age_s:g} s; the first {scale.places} waiting jobs can"
            " be told apart."
        )


def probe(slurm: Slurm) -> Capabilities:
    """Ask Slurm what it is and who we are.

    Raises:
        SlurmError: if it does not answer.
    """
    config = settings(slurm.read("scontrol", "show", "config"))
    return judge(config, level=_level(slurm, config))


def settings(text: str) -> dict[str, str]:
    """Return what `scontrol show config` printed, by name; "" where it says (null)."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name.strip()] = re.sub(r"^\(null\)$", "", value.strip())
    return found


def judge(config: Mapping[str, str], *, level: str) -> Capabilities:
    """Return what the settings mean.

    Args:
        config: Slurm's settings, by name.
        level: our administrator's level in Slurm's accounts, or why it is not known.
    """
    version = config.get("SLURM_VERSION", "")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    weight = _number(config.get("PriorityWeightAge", "0"))
    max_age_s = _seconds(config.get("PriorityMaxAge", ""))
    plugin = config.get("PrioritySiteFactorPlugin", "")
    kind = config.get("PriorityType", "")
    accounting = config.get("AccountingStorageType", "")
    refusals = []
    if numbers < OLDEST:
        refusals.append(f"Slurm {version or '?'} is older than 19.05, which has no SiteFactor")
    if kind != "priority/multifactor":
        refusals.append(f"PriorityType is {kind or 'not set'}, not priority/multifactor")
    if not accounting.endswith("slurmdbd"):
        refusals.append(
            f"AccountingStorageType is {accounting or 'not set'}: without slurmdbd Slurm ignores"
            " PriorityWeightAge, and nothing would bound what we do"
        )
    if weight <= 0 or max_age_s <= 0:
        refusals.append(
            "PriorityWeightAge is 0: waiting would not make up for what we do, so somebody could"
            " starve"
        )
    if plugin and plugin not in {"site_factor/none", "none"}:
        refusals.append(f"PrioritySiteFactorPlugin is {plugin}; it and we would undo each other")
    if level not in MAY_CHANGE:
        refusals.append(
            f"we may not change other people's jobs ({level}); let an administrator run:"
            f" sacctmgr modify user {_me()} set adminlevel=operator"
        )
    remarks = []
    if numbers[:2] != TESTED and not numbers < OLDEST:
        remarks.append(
            f"Slurm {version} was not tested; 22.05 was. Stay in shadow mode for a while"
        )
    if "gres/gpu" not in config.get("AccountingStorageTRES", ""):
        remarks.append("AccountingStorageTRES has no gres/gpu: GPUs are counted from requests")
    return Capabilities(
        version=version,
        cluster=config.get("ClusterName", ""),
        age_weight=weight,
        max_age_s=max_age_s,
        calc_period_s=_seconds(config.get("PriorityCalcPeriod", "")),
        ages_always="ACCRUE_ALWAYS" in config.get("PriorityFlags", ""),
        refusals=tuple(refusals),
        remarks=tuple(remarks),
    )


def _level(slurm: Slurm, config: Mapping[str, str]) -> str:
    """Return our level; the owner of Slurm and root may do everything."""
    owner = config.get("SlurmUser", "").partition("(")[0]
    if os.geteuid() == 0 or _me() == owner:
        return "Administrator"
    try:
        text = slurm.read("sacctmgr", "-n", "-P", "show", "user", _me(), "format=adminlevel")
    except SlurmError as error:
        return f"slurmdbd does not answer: {error}"
    return (text.split() or ["no such user in Slurm's accounts"])[0]


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _seconds(text: str) -> float:
    try:
        return duration_s(text)
    except ValueError:
        return 0.0
