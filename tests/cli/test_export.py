"""`yardmaster export` and `simulate --perfetto`: runs for other programs to show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from yardmaster.cli.export import export
from yardmaster.errors import YardmasterError


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    words = ("--schedulers=fifo,sjf+easy", "--seeds=2", "--jobs=60", "--out=both", "-q")
    assert run("compare", *words, cwd=folder).returncode == 0
    return folder / "both"


def test_traces_are_written_by_both_commands(tmp_path: Path):
    """`simulate --perfetto` and `export` of the run it made give the same bytes."""
    done = run("simulate", "--jobs", "80", "-o", "a", "--perfetto", "a.json", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("export", "a", "--perfetto", "b.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "b.json"
    assert done.stderr == ""
    first = (tmp_path / "a.json").read_bytes()
    assert first == (tmp_path / "b.json").read_bytes()
    assert json.loads(first)["traceEvents"]
    again = run("export", "a", "--perfetto", "b.json", cwd=tmp_path)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr


def test_each_schedule_of_a_comparison_can_be_had(
    compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """By scheduler, written as one likes, and by workload; all four are different."""
    texts = set()
    for scheduler in ("fifo", "sjf+easy@pack"):
        for workload in (0, 1):
            path = tmp_path / f"{scheduler}-{workload}.json"
            export(compared, perfetto=path, scheduler=scheduler, workload=workload)
            texts.add(path.read_text())
    assert len(texts) == 4
    assert "not the schedule" not in capsys.readouterr().err


def test_a_changed_run_is_told(compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A schedule that is not the recorded one is written with a warning."""
    meta = compared / "meta.json"
    before = meta.read_text()
    changed = json.loads(before)
    changed["schedules"] = dict.fromkeys(changed["schedules"], "another")
    meta.write_text(json.dumps(changed))
    try:
        export(compared, perfetto=tmp_path / "t.json", scheduler="fifo")
    finally:
        meta.write_text(before)
    assert "not the schedule" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scheduler", "workload", "complaint"),
    [
        (None, 0, "name one with --scheduler: fifo"),
        ("saf", 0, "Unknown scheduler of"),
        ("sjff", 0, "Did you mean"),
        ("fifo", 2, "numbered from 0"),
    ],
)
def test_what_a_run_does_not_hold_is_refused(
    compared: Path, tmp_path: Path, scheduler: str | None, workload: int, complaint: str
):
    """An ambiguous or a missing schedule is a mistake that names what there is."""
    with pytest.raises(YardmasterError, match=complaint):
        export(compared, perfetto=tmp_path / "t.json", scheduler=scheduler, workload=workload)
    assert not list(tmp_path.iterdir())


def test_a_trace_that_cannot_be_written_is_refused_before_simulating(tmp_path: Path):
    """The mistake costs nothing: no run directory was made."""
    done = run("simulate", "--jobs", "80", "--perfetto", "no/such/a.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "no folder" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_of_another_kind_is_called_that(tmp_path: Path):
    """A training is not a damaged simulation."""
    (tmp_path / "training").mkdir()
    for name in ("config.toml", "run.json"):
        (tmp_path / "training" / name).write_text("")
    with pytest.raises(YardmasterError, match="not a run of `simulate` or `compare`"):
        export(tmp_path / "training", perfetto=tmp_path / "x.json")
