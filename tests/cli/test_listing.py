"""`yardmaster list`: what experiments are made of."""

from __future__ import annotations

import json

import pytest

from yardmaster.cli.listing import listing
from yardmaster.workloads.regimes import FAMILIES, PERTURBATIONS, regimes


def test_regimes_are_listed(capsys: pytest.CaptureFixture[str]):
    """Every regime of every family, with its GPUs and the seconds at which it changes."""
    listing("regimes", json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [row["regime"] for row in rows] == [
        regime.name for family in FAMILIES for regime in regimes(family)
    ]
    changes = {row["regime"]: row["changes at (s)"] for row in rows}
    assert changes["drift-base-surge-diurnal-4"] == "1200, 1800"
    assert changes["gangs-busy"] == ""


def test_perturbations_are_listed(capsys: pytest.CaptureFixture[str]):
    """Every kind with its four severities, as a table too."""
    listing("perturbations", json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [row["perturbation"] for row in rows] == list(PERTURBATIONS)
    assert all(row["severities"].count(",") == 3 for row in rows)
    listing("perturbations")
    assert "capacity-dip" in capsys.readouterr().out
