"""Documents say which factors are combined, and mistakes in them are named."""

from __future__ import annotations

import tomllib

import pytest

from yardmaster.errors import InvalidConfigError, UnknownNameError, YardmasterError
from yardmaster.experiments.suite.cells import cells_of
from yardmaster.experiments.suite.document import Suite, load_suite, suite_names
from yardmaster.experiments.suite.run import run_suite
from yardmaster.model.documents import validate


def suite(**parts) -> Suite:
    given = {"name": "mine", "schedulers": ["sjf"]} | parts
    return validate(Suite, given, "mine.toml")


def test_the_matrix_has_3072_runs():
    """48 regimes × 8 schedulers × 8 seeds, each different."""
    cells = cells_of(load_suite("matrix"))
    assert len(cells) == len({cell.key for cell in cells}) == 48 * 8 * 8
    assert len({cell.setting.name for cell in cells}) == 48


def test_robustness_has_160_scenarios_a_regime():
    """5 perturbations × 4 severities × 8 schedulers, on every regime, beside the clean one."""
    cells = cells_of(load_suite("robustness").with_changes(seeds=1))
    disturbed = [cell for cell in cells if cell.perturbation is not None]
    regimes = {cell.setting.name for cell in disturbed}
    assert len(disturbed) == 160 * len(regimes)
    clean = {cell.setting.name for cell in cells if cell.perturbation is None}
    assert regimes < clean
    assert {cell.setting.family for cell in cells} == {"rlmetadqn", "drift"}


def test_every_shipped_document_can_be_run():
    """All names in the experiments that come along exist."""
    assert {"matrix", "robustness", "hard"} <= set(suite_names())
    for name in ("matrix", "robustness", "hard"):
        assert load_suite(name).name == name
        assert cells_of(load_suite(name).with_changes(seeds=1))


def test_a_document_survives_being_written(small):
    """What is saved in the folder reads back as the same experiment."""
    assert validate(Suite, tomllib.loads(small.to_toml()), "again") == small


def test_changes_replace_factors(small):
    """Options on the command line take the place of the document's, None leaves them."""
    changed = small.with_changes(schedulers=("lifo",), seeds=None)
    assert changed.schedulers == ("lifo",)
    assert changed.seeds == small.seeds
    with pytest.raises(InvalidConfigError, match="seeds"):
        small.with_changes(seeds=0)


def test_all_mistakes_of_a_document_are_named_at_once():
    """Each with its path, and what might have been meant."""
    with pytest.raises(InvalidConfigError) as error:
        suite(
            seeds=0,
            schedulrs=[],
            objectives=["utilisation"],
            regimes=[{"family": "rlmetadqn", "perturbations": ["arrival-nois"]}],
        )
    text = str(error.value)
    for part in (
        "seeds",
        "schedulers'?",
        "utilisation is no metric",
        "regimes[0]",
        "arrival-noise",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"family": "rlmetadq"}, "Did you mean 'rlmetadqn'"),
        ({"family": "rlmetadqn", "names": ["base-low-3"]}, "Did you mean 'base-low-"),
        ({"family": "rlmetadqn", "where": {"shap": ["base"]}}, "Did you mean 'shape'"),
        ({"family": "rlmetadqn", "where": {"shape": ["square"]}}, "no regime has these labels"),
    ],
)
def test_regimes_that_do_not_exist(part, message):
    """A misspelt family, regime or label is named with the nearest one."""
    with pytest.raises(YardmasterError, match=message):
        list(suite(regimes=[part]).settings())


def test_names_that_mean_nothing_are_refused_with_file_and_entry(tmp_path):
    """Schedulers, regimes, workloads, clusters and files: all of them at once, none run."""
    (tmp_path / "broken.csv").write_text("submit_s,duration_s\n0,\n")
    good = {"workload": "lognormal", "cluster": "pool:8", "jobs": 4}
    wrong = suite(
        schedulers=["sjf", "fifo+skp"],
        regimes=[
            {"family": "rlmetadqn"},
            {"family": "hrd"},
            {
                "family": "drift",
                "perturbations": ["arrival-noise"],
                "severities": {"arrival-noise": [-3.0]},
            },
        ],
        workloads=[
            good,
            good | {"workload": "venus-lik"},
            good | {"cluster": "dmo"},
            good | {"workload": str(tmp_path / "nowhere.csv")},
            good | {"workload": str(tmp_path / "broken.csv")},
            good | {"cluster": str(tmp_path)},
        ],
    )
    with pytest.raises(InvalidConfigError) as error:
        run_suite(wrong, tmp_path / "out", source="mine.toml")
    assert error.value.where == "mine.toml"
    assert not (tmp_path / "out").exists()
    told = dict(mistake.split(": ", 1) for mistake in error.value.mistakes)
    parts = {
        "schedulers[1]": "Did you mean 'skip'",
        "regimes[1]": "Did you mean 'hard'",
        "regimes[2].severities": "must be a number above 0",
        "workloads[1].workload": "Did you mean 'venus-like'",
        "workloads[2].cluster": "Did you mean 'demo'",
        "workloads[3].workload": "nowhere.csv",
        "workloads[4].workload": "broken.csv",
        "workloads[5].cluster": "is a directory",
    }
    assert list(told) == list(parts)
    for entry, part in parts.items():
        assert part in told[entry]


def test_two_workloads_of_one_name_are_refused():
    """Rows of the table could not be told apart."""
    one = {"name": "x", "workload": "lognormal", "cluster": "pool:8"}
    with pytest.raises(InvalidConfigError, match="two workloads are called 'x'"):
        list(suite(workloads=[one, one | {"load": 0.5}]).settings())


def test_a_document_without_work_is_refused(tmp_path):
    """Schedulers alone are no experiment."""
    path = tmp_path / "empty.toml"
    path.write_text('name = "empty"\nschedulers = ["sjf"]\n')
    with pytest.raises(InvalidConfigError, match="needs"):
        load_suite(path)


def test_an_unknown_experiment_is_named():
    """With the nearest one that exists."""
    with pytest.raises(UnknownNameError, match="Did you mean 'matrix'"):
        load_suite("matrx")


def test_severities_of_ones_own(small):
    """A kind has the severities the document gives it."""
    part = small.regimes[0]
    assert [str(one) for one in part.disturbances()] == [
        "None",
        "arrival-noise:0.1",
        "capacity-dip:0.2",
    ]


def test_severities_of_a_kind_that_is_not_wanted_are_refused(small):
    """A misspelt kind would otherwise be run at the usual severities."""
    part = small.regimes[0].model_dump(mode="json") | {"severities": {"arrival-noize": [0.1]}}
    with pytest.raises(InvalidConfigError, match="severities of arrival-noize"):
        small.with_changes(regimes=[part])
