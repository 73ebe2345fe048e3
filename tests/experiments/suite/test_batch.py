"""Runs of a batch are those that would be made alone, and one that fails stops no other."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from yardmaster.experiments.suite import batch as module
from yardmaster.experiments.suite.batch import Kit, OtherCodeError, run_batch
from yardmaster.experiments.suite.cells import cells_of
from yardmaster.experiments.suite.fingerprints import code_fingerprint
from yardmaster.experiments.suite.measuring import measured
from yardmaster.schedulers.language import FILE_COPIES, order_files
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.regimes import Regime, perturbed


@pytest.fixture
def kit() -> Kit:
    return Kit(code_fingerprint())


def numbers(outcome) -> dict[str, bytes]:
    return {run.key: run.numbers.tobytes() + run.jct_quantiles_s.tobytes() for run in outcome.runs}


def test_a_run_is_what_its_cell_says(small, kit):
    """Jobs, machines, perturbation, scheduler and seed, and nothing else."""
    cells = cells_of(small)
    made = {run.key: run for run in run_batch(kit, cells).runs}
    assert len(made) == len(cells)
    for cell in cells:
        jobs, machines = perturbed(
            cell.setting.jobs(cell.seed), cell.setting.machines(), cell.perturbation, cell.seed
        )
        alone = measured(simulate(jobs, machines, cell.scheduler, seed=cell.seed))
        np.testing.assert_array_equal(made[cell.key].numbers, alone.numbers)


def test_order_and_company_leave_no_trace(small, kit):
    """Backwards, alone or all together, compiled or not: the same bits."""
    cells = cells_of(small)
    together = numbers(run_batch(kit, cells))
    assert numbers(run_batch(kit, cells[::-1])) == together
    assert {key: one for cell in cells for key, one in numbers(run_batch(kit, [cell])).items()} == (
        together
    )
    assert numbers(run_batch(Kit(kit.code, "always"), cells)) == together


def test_jobs_are_drawn_once_for_all_schedulers(small, kit, monkeypatch):
    """Cells that share jobs and stand together share the drawing."""
    drawn = []
    real = Regime.jobs
    monkeypatch.setattr(Regime, "jobs", lambda self, seed: drawn.append(seed) or real(self, seed))
    run_batch(kit, [cell for cell in cells_of(small) if cell.setting.family == "rlmetadqn"])
    assert len(drawn) == 2 * 3 * 2


def test_a_run_that_fails_stops_no_other(tmp_path, small, kit):
    """Mistakes of an order, or of the jobs, are named; all other runs are made."""
    file = tmp_path / "bad.py"
    file.write_text("def bad(jobs):\n    return jobs.submit_s[:-1]\n")
    changed = small.with_changes(schedulers=(f"{file}:bad+skip", "sjf+skip"))
    outcome = run_batch(kit, cells_of(changed))
    assert len(outcome.runs) == len(outcome.failures) == 14
    assert all("returned an array of shape" in reason for _, reason in outcome.failures)
    missing = small.model_dump(mode="json") | {
        "workloads": [{"workload": "nowhere.csv", "cluster": "pool:2"}]
    }
    outcome = run_batch(kit, cells_of(type(small).model_validate_json(_json(missing))))
    assert len(outcome.failures) == 2
    assert "nowhere.csv" in outcome.failures[0][1]


def _json(value) -> str:
    import json

    return json.dumps(value)


def test_other_code_makes_no_runs(small):
    """Results are never kept under the name of code that did not make them."""
    with pytest.raises(OtherCodeError):
        run_batch(Kit("of another version"), cells_of(small))


def test_files_travel_with_the_batch(tmp_path, small, kit, monkeypatch):
    """Orders, jobs and machines that this machine does not have are those that came along."""
    monkeypatch.setattr(module, "_unpacked", {})
    texts = {
        str(tmp_path / "travels.py"): "def last(jobs):\n    return -jobs.submit_s\n",
        str(tmp_path / "jobs.csv"): "submit_s,duration_s\n0,5\n1,7\n",
        str(tmp_path / "two.toml"): '[[nodes]]\ncount = 2\ngpu_type = "V100"\ngpus = 1\n',
        str(tmp_path / "few.toml"): "jobs = 3\nload = 0.5\n",
    }
    order, jobs, machines, recipe = texts
    for name, text in texts.items():
        Path(name).write_text(text)
        monkeypatch.setitem(FILE_COPIES, name, Path(name))
    own = [{"workload": one, "cluster": machines} for one in (jobs, recipe)]
    whole = small.with_changes(schedulers=(f"{order}:last+skip",), seeds=1, workloads=own)
    cells = cells_of(whole)
    files = order_files(whole.schedulers) | whole.files()
    sent = {name: path.read_bytes() for name, path in files.items()}
    assert sorted(sent) == sorted(texts)
    here = run_batch(kit, cells)
    for name in texts:
        Path(name).unlink()
    assert len(run_batch(kit, cells).failures) == len(cells)
    there = run_batch(Kit(kit.code, files=sent), cells)
    assert not here.failures + there.failures
    assert FILE_COPIES[order].read_text() == texts[order]
    for one, other in zip(here.runs, there.runs, strict=True):
        np.testing.assert_array_equal(one.numbers, other.numbers)


def test_modules_travel_with_their_order(tmp_path, small, kit, monkeypatch):
    """What stands beside an order comes along, and a later batch may bring another."""
    monkeypatch.setattr(module, "_unpacked", {})
    monkeypatch.setattr("sys.path", list(sys.path))
    order = tmp_path / "travels_in_company.py"
    monkeypatch.setitem(FILE_COPIES, str(order), order)
    text = "from travelling_kit.keys import SIGN\ndef by(jobs):\n    return SIGN * jobs.submit_s\n"
    order.write_text(text)
    found = []
    for sign in ("1.0", "-1"):
        kept = {"travelling_kit/keys.py": f"SIGN = {sign}\n".encode()}
        cells = cells_of(small.with_changes(schedulers=("fifo+skip",)))
        cells = [replace(cell, scheduler=f"{order}:by+skip") for cell in cells]
        sent = Kit(kit.code, files={str(order): text.encode()}, beside={str(order): kept})
        outcome = run_batch(sent, cells)
        assert not outcome.failures
        found.append([run.numbers[0] for run in outcome.runs])
    assert found[0] != found[1]


def test_loading_is_not_counted(small, kit, monkeypatch):
    """The first run of a process has no cost of its own."""
    monkeypatch.setattr(module, "_loaded", set())
    seconds = [run.seconds for run in run_batch(kit, cells_of(small)[:3]).runs]
    assert [math.isnan(one) for one in seconds] == [True, False, False]
