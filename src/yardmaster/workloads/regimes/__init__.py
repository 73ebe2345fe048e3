"""Situations that schedulers are tried in: families of regimes, and what goes wrong in them.

A regime is a workload process on machines (`regime.py`); families of them are listed in
`families.py`; `perturbations.py` disturbs the jobs or the machines of any of them.
"""

from __future__ import annotations

from yardmaster.workloads.regimes.families import FAMILIES, Family, find_regime, regimes
from yardmaster.workloads.regimes.perturbations import (
    PERTURBATIONS,
    Perturbation,
    PerturbationKind,
    perturbed,
    severities,
)
from yardmaster.workloads.regimes.regime import Phase, Regime

__all__ = [
    "FAMILIES",
    "PERTURBATIONS",
    "Family",
    "Perturbation",
    "PerturbationKind",
    "Phase",
    "Regime",
    "find_regime",
    "perturbed",
    "regimes",
    "severities",
]
