"""The study of one node: the same traces everywhere, and a table of what really ran."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def test_traces_are_the_same_every_time_and_differ_from_each_other():
    """Ten traces of 50 jobs, from their number alone; none asks for more slots than there are."""
    import live_traces

    for slots in (2, 16):
        traces = [live_traces.trace(number, slots) for number in range(live_traces.TRACES)]
        again = [live_traces.trace(number, slots) for number in range(live_traces.TRACES)]
        assert traces == again
        assert len({one.commands.jobs for one in traces}) == 10
        for one in traces:
            assert len(one.commands) == len(one.work_s) == 50
            assert max(job.gpus for job in one.commands.jobs) <= slots
            assert 1.0 < sum(one.work_s.values()) / 50 < 4.0


def test_a_trace_is_a_workload_file(tmp_path):
    """What is written reads back as the same jobs."""
    import live_traces

    from yardmaster.live.local.commands import read_commands

    one = live_traces.trace(3, 16)
    path = tmp_path / "trace.toml"
    path.write_text(live_traces.as_toml(one))
    found = read_commands(path)
    assert found.name == "trace-3"
    for job, other in zip(found.jobs, one.commands.jobs, strict=True):
        assert (job.id, job.gpus, job.submit_s, job.estimate_s, job.command[1:]) == (
            other.id, other.gpus, other.submit_s, other.estimate_s, other.command[1:],
        )  # fmt: skip


def test_a_small_study_runs_and_goes_on_where_it_was_left(tmp_path, monkeypatch, capsys):
    """Two traces of four real jobs under two schedulers; a second start runs nothing again."""
    import live_node
    import live_traces

    monkeypatch.setattr(live_traces, "JOBS", 4)
    monkeypatch.setattr(live_traces, "KINDS", {"prepare": 1.0})
    monkeypatch.setattr(live_traces, "LONGEST_S", 0.4)
    arguments = ["live_node.py", str(tmp_path), "--gpus", "3", "--traces", "2"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--schedulers", "fifo+strict", "sjf+easy"])
    live_node.main()
    assert "4/4" in capsys.readouterr().out
    live_node.main()
    said = capsys.readouterr().out
    assert "4/4" not in said
    rows = [line for line in said.splitlines() if line.startswith("| ") and "easy" in line]
    assert len(rows) == 1
    assert (tmp_path / "results.json").exists()


def test_a_cell_that_was_interrupted_is_void_and_runs_again(tmp_path, monkeypatch, capsys):
    """A run that was taken up again is in no table; it is kept aside and run anew, in one go."""
    import live_node
    import live_traces

    from yardmaster.live.folder import read_json, write_json

    monkeypatch.setattr(live_traces, "JOBS", 2)
    monkeypatch.setattr(live_traces, "KINDS", {"prepare": 1.0})
    monkeypatch.setattr(live_traces, "LONGEST_S", 0.2)
    arguments = ["live_node.py", str(tmp_path), "--gpus", "3", "--traces", "1"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--schedulers", "sjf+easy"])
    live_node.main()
    about = tmp_path / "trace-0/sjf+easy/live.json"
    write_json(about, read_json(about) | {"restarts": 1})
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--table"])
    with pytest.raises(SystemExit, match="No cell has run yet"):
        live_node.main()
    monkeypatch.setattr(sys, "argv", sys.argv[:-1])
    live_node.main()
    assert "set aside" in capsys.readouterr().out
    assert read_json(about)["restarts"] == 0
    assert (tmp_path / "trace-0/sjf+easy-void-1/audit.jsonl").exists()
