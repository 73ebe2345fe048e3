"""The probe names every reason not to change the order, and says the bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.live.slurm.probing import judge, probe, settings

CONFIG = settings((Path(__file__).parent / "samples" / "config.txt").read_text(encoding="utf-8"))


def test_a_fit_slurm_has_no_refusals():
    """The recorded settings of the small cluster let us work."""
    found = judge(CONFIG, level="Operator")
    assert found.refusals == ()
    assert (found.age_weight, found.max_age_s, found.calc_period_s) == (1_000_000, 86_400.0, 60.0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"SLURM_VERSION": "18.08.9"}, "older than 19.05"),
        ({"PriorityType": "priority/basic"}, "not priority/multifactor"),
        ({"AccountingStorageType": "accounting_storage/none"}, "without slurmdbd"),
        ({"PriorityWeightAge": "0"}, "somebody could starve"),
        ({"PrioritySiteFactorPlugin": "site_factor/ours"}, "undo each other"),
        ({"PriorityMaxAge": ""}, "somebody could starve"),
    ],
)
def test_each_unfit_setting_is_named(changes: dict[str, str], reason: str):
    """One wrong setting is one refusal that names it."""
    found = judge(CONFIG | changes, level="Administrator")
    assert len(found.refusals) == 1
    assert reason in found.refusals[0]


def test_all_reasons_come_at_once():
    """Without settings and without rights, nothing is forgotten."""
    assert len(judge({}, level="None").refusals) == 5


@pytest.mark.parametrize("level", ["None", "no such user in Slurm's accounts", "slurmdbd is away"])
def test_without_rights_the_way_to_get_them_is_told(level: str):
    """Who may not change other people's jobs is told what an administrator has to run."""
    (reason,) = judge(CONFIG, level=level).refusals
    assert level in reason
    assert "adminlevel=operator" in reason


def test_the_bound_is_said_in_seconds_and_points():
    """6000 points per 600 s: 100 s of waiting are worth 1000 points."""
    found = judge(
        CONFIG | {"PriorityWeightAge": "6000", "PriorityMaxAge": "00:10:00"}, level="None"
    )
    assert "SiteFactor 0 to 1000" in found.bound_in_words(100.0)


def test_a_bound_that_would_not_bind_is_refused():
    """Age counts up to PriorityMaxAge: an advance of more than half of that is refused."""
    found = judge(CONFIG, level="Operator")
    assert found.refusals_for(43_200.0) == ()
    for advance_s in (43_201.0, 86_400.0, 1e9):
        (reason,) = found.refusals_for(advance_s)
        assert "--max-advance-s 43200 or less" in reason


def test_too_few_places_are_refused():
    """Where the bound leaves room for a handful of factors only, the order is not changed."""
    found = judge(CONFIG | {"PriorityWeightAge": "100"}, level="Operator")
    (reason,) = found.refusals_for(3600.0)
    assert "only 0 waiting jobs could be told apart" in reason


def test_where_age_does_not_count_there_is_no_bound():
    """Shadow mode works on such a Slurm too, and says that nothing could be bounded."""
    found = judge({"SLURM_VERSION": "22.05.8"}, level="None")
    assert not found.counts_age
    assert "no bound" in found.bound_in_words(100.0)


def test_a_real_slurm_is_probed(mini):
    """The small cluster says what the recorded settings say."""
    found = probe(mini.slurm)
    assert found.refusals == ()
    assert found.version.startswith("22.") or found.remarks
    assert found.age_weight == mini.cluster.shape.age_weight
