"""`yardmaster live local` and `live replay`, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from yardmaster.cli.live.local import local
from yardmaster.cli.live.replay import replay
from yardmaster.errors import YardmasterError

JOBS = """
[[job]]
id = "a"
command = "echo hello"
estimate_s = 1
[[job]]
id = "b"
command = "exit 4"
estimate_s = 1
"""


def yardmaster(*arguments: str, folder) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", "live", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_workload_is_run_and_replayed(tmp_path, capsys):
    """Jobs run, a failed one gives exit code 1, and the folder can be simulated again."""
    (tmp_path / "jobs.toml").write_text(JOBS)
    run = yardmaster("local", "jobs.toml", "--gpus", "1", "--json", folder=tmp_path)
    assert run.returncode == 1, run.stderr
    said = json.loads(run.stdout)
    assert (said["finished"], said["failed"], said["state"]) == (1, 1, "finished")
    assert "a starts" in run.stderr
    replayed = yardmaster("replay", said["folder"], "--out", "report.md", folder=tmp_path)
    assert replayed.returncode == 0, replayed.stderr
    assert "predicted against measured" in replayed.stdout
    assert (tmp_path / "report.md").read_text().rstrip() == replayed.stdout.rstrip()
    replay(tmp_path / said["folder"], json=True)
    assert {row["job"] for row in json.loads(capsys.readouterr().out)["jobs"]} == {"a", "b"}


def test_failures_are_named_with_how_they_failed(tmp_path, monkeypatch, capsys):
    """A time-out is called one, and the end names every failed job and where its log is."""
    monkeypatch.chdir(tmp_path)
    slow = '[[job]]\nid = "slow"\ncommand = "sleep 20"\nestimate_s = 1\ntimeout_s = 0.3\n'
    (tmp_path / "jobs.toml").write_text(JOBS + slow)
    assert local(Path("jobs.toml"), gpus=1, out=Path("here")) == 1
    said = capsys.readouterr()
    assert "slow timed out after 0.3 s (exit code 143)" in said.err
    assert "failed: b (exit 4), slow (timed out); logs in here/jobs" in said.out
    assert "To go on" not in said.err


def test_a_stopped_run_says_how_to_go_on(tmp_path):
    """Stopped by SIGTERM it prints a command, and that command runs the rest."""
    job = '[[job]]\nid = "{}"\ncommand = "[ -e go ] || sleep 30"\nestimate_s = 1\n'
    (tmp_path / "jobs.toml").write_text(job.format("a") + job.format("b"))
    command = [sys.executable, "-m", "yardmaster", "live", "local", "jobs.toml", "--gpus", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        while "starts" not in run.stderr.readline():
            assert run.poll() is None
        run.terminate()
        said = run.stderr.read()
    assert run.returncode == 1
    again = said.partition("To go on: ")[2].split()
    assert again[:5] == ["yardmaster", "live", "local", "jobs.toml", "-o"]
    (tmp_path / "go").touch()
    rest = yardmaster(*again[2:], "--json", folder=tmp_path)
    assert (rest.returncode, json.loads(rest.stdout)["finished"]) == (0, 2)


def test_a_run_that_cannot_begin_announces_nothing(tmp_path, monkeypatch, capsys):
    """Where there is too little to run on, the reason is all that is said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large.toml").write_text(JOBS + "gpus = 9\n")
    with pytest.raises(YardmasterError, match="more than the 1 slots"):
        local(Path("large.toml"), gpus=1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("scheduler", "file", "sentence"),
    [("srpt+preemptive", "jobs.toml", "never stop"), ("sjf", "nothing.toml", "Cannot read")],
)
def test_mistakes_end_with_a_sentence(tmp_path, monkeypatch, scheduler, file, sentence):
    """A scheduler that stops jobs and a file that is not there are refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.toml").write_text(JOBS)
    with pytest.raises(YardmasterError, match=sentence):
        local(Path(file), scheduler=scheduler, gpus=1, quiet=True)
    assert not (tmp_path / "runs").exists()


def test_a_folder_that_is_no_run_is_said_to_be_none(tmp_path):
    """Nothing to replay ends with a sentence."""
    with pytest.raises(YardmasterError, match="not the folder"):
        replay(tmp_path)
