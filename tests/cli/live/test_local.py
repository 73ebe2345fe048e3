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
