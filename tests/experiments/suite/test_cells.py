"""Cells are named after what they are made from, and batched with those that share their jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.engine.picking.sight import Sight
from yardmaster.errors import InvalidConfigError
from yardmaster.experiments.suite import cells as module
from yardmaster.experiments.suite.cells import batches_of, cell_key, cells_of
from yardmaster.experiments.suite.document import load_suite
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.testing.policies import random_policy

MATRIX = cells_of(load_suite("matrix").with_changes(seeds=2))


def test_every_combination_is_there_once(small):
    """Settings × disturbances × seeds × schedulers."""
    cells = cells_of(small)
    assert len(cells) == len({cell.key for cell in cells}) == (2 * 3 + 1) * 2 * 2
    assert str(cells[0]) == "sjf+skip on base-low-2, seed 0"
    assert "under arrival-noise:0.1" in "".join(map(str, cells))


def test_keys_do_not_depend_on_the_document(small):
    """The same run in another experiment is the same run."""
    fewer = small.with_changes(name="other", schedulers=("fifo+skip",), seeds=1)
    keys = {cell.key for cell in cells_of(small)}
    assert {cell.key for cell in cells_of(fewer)} < keys


def test_the_same_jobs_under_two_names_are_refused(small):
    """Each run has one name in the table."""
    own = small.workloads[0].model_dump(mode="json", exclude_none=True)
    twice = small.with_changes(workloads=[own, own | {"name": "again"}])
    with pytest.raises(InvalidConfigError, match="'again' are the same jobs and machines"):
        cells_of(twice)


def test_files_count_with_their_content(small, tmp_path):
    """Moved to another folder, files of orders, policies, jobs and machines name the same runs."""
    text = "def first(jobs):\n    return jobs.submit_s\n"
    keys = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.py").write_text(text)
        (folder / "jobs.csv").write_text("submit_s,duration_s\n0,5\n")
        (folder / "two.toml").write_text(
            'name = "two"\n[[nodes]]\ncount = 2\ngpu_type = "V100"\ngpus = 1\n'
        )
        write_policy(folder / "policy.npz", random_policy(Sight(window=4), 1))
        own = {"workload": str(folder / "jobs.csv"), "cluster": str(folder / "two.toml")}
        names = (f"{folder}/mine.py:first+skip", f"policy:{folder}", f"policy:{folder}/policy.npz")
        whole = small.with_changes(schedulers=names, workloads=[own | {"name": "own"}])
        keys.append([cell.key for cell in cells_of(whole)])
        assert len({cell.scheduler for cell in cells_of(whole)}) == 3
    assert keys[0] == keys[1]
    assert len(set(keys[0])) * 3 == len(keys[0]) * 2  # the policy is named twice
    (tmp_path / "there" / "jobs.csv").write_text("submit_s,duration_s\n0,6\n")
    (tmp_path / "there" / "mine.py").write_text(f"# changed\n{text}")
    others = [cell.key for cell in cells_of(whole)]
    for place, cell in enumerate(cells_of(whole)):
        has_changed = cell.setting.name == "own" or "mine.py" in cell.scheduler
        assert (others[place] == keys[0][place]) == (not has_changed)


def test_what_two_tables_ask_for_is_one_cell(small):
    """The table of results has one row of each run, however often it is asked for."""
    twice = small.with_changes(regimes=[*small.tables()["regimes"]] * 2)
    assert [cell.key for cell in cells_of(twice)] == [cell.key for cell in cells_of(small)]


def test_a_recipe_counts_with_the_file_it_replays(small, tmp_path):
    """The same recipe beside other arrivals is another workload."""
    recipe = (
        '[arrivals]\nprocess = "replayed"\nfile = "times.csv"\n'
        '[durations]\nprocess = "fixed"\nvalue = 60\n'
    )
    keys = []
    for name, times in (("here", "0,5\n"), ("there", "0,5\n"), ("elsewhere", "9,5\n")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.toml").write_text(recipe)
        (folder / "times.csv").write_text(f"submit_s,duration_s\n{times}")
        own = {"workload": str(folder / "mine.toml"), "cluster": "pool:8", "name": "own"}
        keys.append({c.key for c in cells_of(small.with_changes(regimes=[], workloads=[own]))})
    assert keys[0] == keys[1]
    assert keys[0].isdisjoint(keys[2])


def test_a_changed_scheduler_renames_its_cells_alone(small, monkeypatch):
    """Cells of other schedulers keep their keys."""
    before = {cell.key: cell.scheduler for cell in cells_of(small)}
    real = module.scheduler_fingerprint
    monkeypatch.setattr(
        module,
        "scheduler_fingerprint",
        lambda name: real(name) + ("edited" if name == "sjf+skip" else ""),
    )
    after = {cell.key: cell.scheduler for cell in cells_of(small)}
    assert {before[key] for key in before.keys() & after.keys()} == {"fifo+skip"}
    assert {before[key] for key in before.keys() - after.keys()} == {"sjf+skip"}


def test_changed_code_renames_all_cells(small, monkeypatch):
    """Nothing made by other code is taken for granted."""
    before = {cell.key for cell in cells_of(small)}
    monkeypatch.setattr(module, "code_fingerprint", lambda: "other")
    assert not before & {cell.key for cell in cells_of(small)}


@pytest.mark.parametrize("place", range(4))
def test_every_part_of_a_key_matters(place):
    """A key tells jobs, scheduler and both digests apart."""
    parts = ["a", "b", "c", "d"]
    other = [*parts]
    other[place] = "x"
    assert cell_key(*parts) != cell_key(*other)


@given(st.integers(1, 100), st.sets(st.integers(0, len(MATRIX) - 1), max_size=200))
def test_batches_hold_every_cell_once(most, chosen):
    """No batch is too large, and none is lost, in the order they came."""
    cells = [MATRIX[place] for place in sorted(chosen)]
    batches = batches_of(cells, most)
    assert [cell for batch in batches for cell in batch] == cells
    assert all(1 <= len(batch) <= most for batch in batches)


def test_batches_keep_together_what_shares_jobs():
    """Where there is room, the jobs of a group are drawn once."""
    batches = batches_of(MATRIX, 20)
    assert {len(batch) for batch in batches} == {16}
    firsts = [(batch[0].setting.name, batch[0].seed) for batch in batches]
    lasts = [(batch[-1].setting.name, batch[-1].seed) for batch in batches]
    assert not any(last == first for last, first in zip(lasts, firsts[1:], strict=False))
