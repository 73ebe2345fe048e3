"""What a run's folder says of itself, also when it is damaged."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yardmaster.dashboard.run_cards import Card, card_of, is_run


@pytest.fixture(scope="module")
def compared(make_run) -> Path:
    return make_run(
        "compare", "--jobs", "60", "--seeds", "2", "-s", "fifo+strict,sjf+easy", "--out", "pair"
    )


def test_a_comparison_shows_its_best_scheduler(compared):
    """The best by the run's objective, with its own means over the workloads."""
    card = card_of("pair", compared)
    rows = json.loads((compared / "summary.json").read_text())
    means = {
        name: sum(row["mean_jct_s"] for row in rows if row["scheduler"] == name) / 2
        for name in ("fifo+strict", "sjf+easy")
    }
    assert card.kind == "compare"
    assert card.scheduler == min(means, key=means.__getitem__)
    assert card.metrics["mean_jct_s"] == pytest.approx(min(means.values()))
    assert card.schedulers == 2
    assert card.status == "finished"


def test_a_question_and_its_report(make_run):
    """What-if runs say how many simulations they made, and that a report can be read."""
    path = make_run("whatif", "--jobs", "60", "--seeds", "1", "--nodes", "+1", "--out", "question")
    card = card_of("question", path)
    assert card.kind == "whatif"
    assert card.report
    assert "simulations" in card.headline


def test_folders_of_other_kinds(tmp_path):
    """Training, tuning, experiments, evaluations and live runs are told apart by their files."""

    def folder(name: str, **files: str) -> Path:
        path = tmp_path / name
        path.mkdir()
        for file, text in files.items():
            (path / file.replace("_", ".")).write_text(text)
        return path

    about = {"status": "running", "metric": "returns", "best": -1.5, "steps": 10, "started": None}
    config = '[train]\nsteps = 100\n[learner]\nname = "ppo"\n[task]\nworkload = "venus-like"\n'
    train = folder("t", config_toml=config, run_json=json.dumps(about))
    (train / "progress.jsonl").write_text('{"steps": 40}\n{"steps": 50}\n{"ste')
    card = card_of("t", train)
    assert (card.kind, card.progress, card.scheduler) == ("train", 0.5, "ppo")
    assert card.status == "killed"  # it says running, but nobody holds its lock
    assert card_of("u", folder("u", config_toml="", study_db="")).kind == "tune"
    suite = folder("e", experiment_toml='name = "m"\nschedulers = ["fifo"]\nseeds = 2\n')
    assert card_of("e", suite).kind == "experiment"
    live = {"state": "running", "scheduler": "sjf+easy", "nodes": [{"gpus": 4}]}
    assert card_of("l", folder("l", live_json=json.dumps(live))).kind == "live"
    judged = {"rows": [{"player": "a"}], "episodes": 3, "task": "default"}
    assert card_of("j", folder("j", evaluation_json=json.dumps(judged))).kind == "evaluate"


def test_a_run_whose_lock_is_held_is_running(tmp_path):
    """Whether somebody trains is seen from outside, without touching the lock."""
    from yardmaster.experiments.training.folder import RunFolder

    (tmp_path / "config.toml").write_text("[train]\nsteps = 100\n")
    (tmp_path / "run.json").write_text('{"status": "running", "metric": "returns"}')
    with RunFolder(tmp_path).held():
        assert card_of("t", tmp_path).status == "running"
    assert card_of("t", tmp_path).status == "killed"


def test_a_run_being_written_is_listed(tmp_path):
    """The temporary folder of a command at work is a running run; of a dead one, a leftover."""
    running = tmp_path / f".mine.partial-{os.getpid()}"
    dead = tmp_path / ".mine.partial-999999999"
    for path in (running, dead):
        path.mkdir()
        assert is_run(path)
    assert card_of(running.name, running).status == "running"
    assert card_of(dead.name, dead).status == "interrupted"


@pytest.mark.parametrize("name", ["config.toml", "meta.json", "summary.json"])
@pytest.mark.parametrize("text", [None, "", "{", "[1, 2]", "\x00\xff", '{"a": {}}', "[" * 5000])
def test_damage_is_told_in_a_sentence(compared, tmp_path, name, text):
    """Whatever is wrong with whichever file, there is a card, and it says so."""
    path = tmp_path / "pair"
    path.mkdir()
    for file in ("config.toml", "meta.json", "summary.json"):
        shutil.copy(compared / file, path / file)
    (path / name).unlink()
    if text is not None:
        (path / name).write_text(text, encoding="latin-1")
    card = card_of("pair", path)
    assert card.status == "damaged"
    assert card.sentence.endswith(".")


@given(
    files=st.dictionaries(
        st.sampled_from(
            ["live.json", "experiment.toml", "trainings.toml", "evaluation.json", "run.json",
             "config.toml", "meta.json", "summary.json", "progress.jsonl", "failures.json"]
        ),
        st.one_of(
            st.binary(max_size=40),
            st.recursive(
                st.none() | st.booleans() | st.floats() | st.text(max_size=5),
                lambda inner: st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["state", "rows", "status", "train"]), inner),
                max_leaves=8,
            ).map(lambda value: json.dumps(value).encode()),
        ),
        max_size=4,
    )
)  # fmt: skip
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_folder_breaks_the_list(tmp_path_factory, files):
    """Any bytes in any of the files give a card."""
    path = tmp_path_factory.mktemp("any")
    for name, data in files.items():
        (path / name).write_bytes(data)
    assert isinstance(card_of("any", path), Card)
