"""The runner, with real processes: everything runs once, through crashes of the runner itself."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import read_lines
from yardmaster.live.folder import AUDIT, TELEMETRY, read_json
from yardmaster.live.local.attempts import Attempt
from yardmaster.live.local.commands import Commands, commands_of
from yardmaster.live.local.processes import process_of
from yardmaster.live.local.runner import Result, Settings, run_local

KILLS = 40


def workload(*rows: dict, name: str = "w") -> Commands:
    return commands_of([{"estimate_s": 1.0, **row} for row in rows], name=name)


def run(jobs: Commands, folder: Path, **settings) -> Result:
    return run_local(jobs, folder, Settings(**({"gpus": 2, "grace_s": 0.3} | settings)))


def events(folder: Path, job: str) -> list[str]:
    lines = read_lines(folder / AUDIT)
    return [line["event"] for line in lines if line["what"] == "job" and line["job"] == job]


def test_jobs_run_with_their_logs_and_exit_codes(tmp_path):
    """Each job has its own folder, output and exit code, and the log tells its life."""
    jobs = workload(
        {"id": "good", "command": "echo $YARDMASTER_JOB $YARDMASTER_SLOTS [$CUDA_VISIBLE_DEVICES]"},
        {"id": "bad", "command": "exit 3"},
        {"id": "pair", "command": "true", "gpus": 2, "submit_s": 0.05},
    )
    assert run(jobs, tmp_path) == Result("finished", 2, 1, 0, 0, ("bad (exit 3)",))
    assert (tmp_path / "jobs/good/attempt-1/stdout.log").read_text().startswith("good ")
    assert "[]" in (tmp_path / "jobs/good/attempt-1/stdout.log").read_text()
    assert events(tmp_path, "good") == ["submitted", "started", "ended"]
    assert events(tmp_path, "bad") == ["submitted", "started", "ended", "gave up"]
    about = read_json(tmp_path / "live.json")
    assert (about["state"], about["jobs"], about["nodes"][0]["gpus"]) == ("finished", 3, 2)
    assert about["telemetry"]
    assert list(read_lines(tmp_path / TELEMETRY))
    assert (tmp_path / "heartbeat.json").exists()


def test_slots_are_never_overbooked_and_the_order_is_the_schedulers(tmp_path):
    """On one slot, shortest-job-first runs the jobs by estimate, one at a time."""
    jobs = workload(
        *(
            {"id": f"j{number}", "command": f"echo {number} >> order; sleep 0.02",
             "estimate_s": 1 + number % 5 + number / 100, "folder": str(tmp_path)}
            for number in range(8)
        )
    )  # fmt: skip
    run(jobs, tmp_path / "run", gpus=1)
    ran = [int(line) for line in (tmp_path / "order").read_text().split()]
    assert ran == sorted(range(8), key=lambda number: 1 + number % 5 + number / 100)
    spans = sorted(
        (line["start_s"], line["end_s"])
        for line in read_lines(tmp_path / "run" / AUDIT)
        if line["what"] == "job" and line["event"] == "ended"
    )
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_failures_are_tried_again_after_a_while(tmp_path, monkeypatch):
    """A job that fails once and has a retry left succeeds, later than its back-off."""
    monkeypatch.setattr("yardmaster.live.local.node.BACK_OFF_S", 0.2)
    command = f"test -e {tmp_path}/there || {{ touch {tmp_path}/there; exit 1; }}"
    result = run(workload({"id": "a", "command": command, "retries": 1}), tmp_path / "run")
    assert (result.finished, result.failed) == (1, 0)
    assert events(tmp_path / "run", "a") == [
        "submitted", "started", "ended", "retrying", "started", "ended",
    ]  # fmt: skip
    lines = [line for line in read_lines(tmp_path / "run" / AUDIT) if line["what"] == "job"]
    first_end = next(line["end_s"] for line in lines if line["event"] == "ended")
    second_start = [line["start_s"] for line in lines if line["event"] == "started"][1]
    assert second_start >= first_end + 0.2


def test_overtime_is_ended_gently_then_by_force(tmp_path):
    """A time-out asks first; who listens says how it ended, who does not is killed."""
    jobs = workload(
        {"id": "listens", "command": "trap 'exit 5' TERM; sleep 30 & wait", "timeout_s": 0.3},
        {"id": "deaf", "command": "trap '' TERM; sleep 30", "timeout_s": 0.3},
    )
    began = time.monotonic()
    assert run(jobs, tmp_path).failed == 2
    assert time.monotonic() - began < 10
    codes = {
        line["job"]: line["exit_code"]
        for line in read_lines(tmp_path / AUDIT)
        if line["what"] == "job" and line["event"] == "ended"
    }
    assert codes == {"listens": 5, "deaf": 137}
    assert "timed out" in events(tmp_path, "deaf")


def test_nothing_is_left_behind_on_the_machine(tmp_path):
    """Background processes of a job end with it."""
    jobs = workload({"id": "a", "command": f"sleep 60 & echo $! > {tmp_path}/pid"})
    run(jobs, tmp_path / "run")
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while _is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    process = process_of(pid)
    return process is not None and process.is_alive()


def test_a_stopped_run_can_be_taken_up_again(tmp_path):
    """SIGTERM ends the jobs cleanly; taken up again, they run from the start, and all get done."""
    jobs = workload(
        *(
            {"id": f"j{number}", "command": f"sleep 2; echo {number} >> {tmp_path}/done"}
            for number in range(4)
        )
    )
    child = _forked(jobs, tmp_path / "run")
    _wait_for(lambda: list((tmp_path / "run/jobs").glob("*/attempt-1/begun")))
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    assert read_json(tmp_path / "run/live.json")["state"] == "stopped"
    assert "stopped" in events(tmp_path / "run", "j0")
    assert run(jobs, tmp_path / "run", gpus=4).finished == 4
    assert sorted((tmp_path / "done").read_text().split()) == ["0", "1", "2", "3"]
    told = events(tmp_path / "run", "j0")
    assert told == ["submitted", "started", "stopped", "started", "ended"]


def test_a_signal_in_the_middle_of_a_launch_stops_that_job_too(tmp_path, monkeypatch):
    """The job that is being started when SIGTERM comes is asked to end like the others."""
    launch = Attempt.launch

    def launch_in_a_bad_moment(self, *arguments, **named):
        started = launch(self, *arguments, **named)
        os.kill(os.getpid(), signal.SIGTERM)
        return started

    monkeypatch.setattr(Attempt, "launch", launch_in_a_bad_moment)
    began = time.monotonic()
    result = run(workload({"id": "a", "command": "sleep 20"}), tmp_path)
    assert (result.state, result.unfinished) == ("stopped", 1)
    assert time.monotonic() - began < 10
    assert events(tmp_path, "a") == ["submitted", "started", "stopped"]


def test_a_stop_that_was_cut_short_is_finished(tmp_path):
    """A job that was asked to end, by a runner that died then, is ended and run from the start."""
    command = f"test -e {tmp_path}/there && exit 0; touch {tmp_path}/there; trap '' TERM; sleep 30"
    jobs, folder = workload({"id": "a", "command": command}), tmp_path / "run"
    child = _forked(jobs, folder)
    _wait_for((tmp_path / "there").exists)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    Attempt(folder / "jobs/a/attempt-1").mark_stopped()
    assert run(jobs, folder, gpus=4) == Result("finished", 1, 0, 0, 1)
    assert events(folder, "a") == ["submitted", "started", "stopped", "started", "ended"]


def _forked(jobs: Commands, folder: Path, seed: int = 0) -> int:
    """Start a runner in a process of its own; return its pid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of other tests may linger
        child = os.fork()
    if child:
        return child
    code = 1
    with contextlib.suppress(BaseException):
        os.setpgid(0, 0)
        code = run(jobs, folder, gpus=4, seed=seed).failed
    os._exit(code)


def _wait_for(condition, seconds: float = 10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_killed_at_random_moments_it_loses_no_job_and_runs_none_twice(tmp_path):
    """Through 40 kills -9 of the runner, 150 real jobs each run exactly once, to their end."""
    dice = random.Random(8)
    jobs = workload(
        *(
            {
                "id": f"j{number}",
                "command": f"echo {number} >> {tmp_path}/begun; sleep {dice.uniform(0, 0.15):.3f};"
                f" echo {number} >> {tmp_path}/done",
                "gpus": dice.choice([1, 1, 2]),
                "submit_s": number * 0.01,
            }
            for number in range(150)
        )
    )
    folder, kills = tmp_path / "run", 0
    while kills < KILLS:
        child = _forked(jobs, folder)
        time.sleep(dice.uniform(0.02, 0.25))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            break
        kills += 1
    assert kills > 10
    result = run(jobs, folder, gpus=4)
    assert (result.finished, result.failed, result.unfinished) == (150, 0, 0)
    for name in ("begun", "done"):
        ran = Counter((tmp_path / name).read_text().split())
        assert ran == Counter(str(number) for number in range(150))
    told = Counter(
        (line["job"], line["event"]) for line in read_lines(folder / AUDIT) if line["what"] == "job"
    )
    assert set(told.values()) == {1}
    assert len(told) == 3 * 150


def test_another_workload_or_other_slots_are_refused(tmp_path):
    """A folder is taken up with the workload and the slots it was begun with, or not at all."""
    run(workload({"id": "a", "command": "true"}), tmp_path)
    with pytest.raises(YardmasterError, match="another workload"):
        run(workload({"id": "a", "command": "true"}, name="other"), tmp_path)
    with pytest.raises(YardmasterError, match="begun with gpus"):
        run(workload({"id": "a", "command": "true"}), tmp_path, gpus=3)
    with pytest.raises(YardmasterError, match="more than the 2 slots"):
        run(workload({"id": "a", "command": "true", "gpus": 3}), tmp_path)


def test_jobs_that_have_changed_are_refused(tmp_path):
    """A run is taken up with the very jobs it was begun with; nothing is touched otherwise."""
    run(workload({"id": "a", "command": "true"}), tmp_path)
    before = (tmp_path / "live.json").read_text()
    with pytest.raises(YardmasterError, match=r"Job a has changed .* command was"):
        run(workload({"id": "a", "command": "false"}), tmp_path)
    with pytest.raises(YardmasterError, match="has a job 'a' that the workload has not"):
        run(workload({"id": "b", "command": "true"}), tmp_path)
    assert (tmp_path / "live.json").read_text() == before
    assert run(workload({"id": "a", "command": "true"}), tmp_path).finished == 1


@pytest.mark.parametrize(
    "odd", [{"grace_s": math.nan}, {"grace_s": -1.0}, {"sample_s": 0.0}, {"sample_s": math.inf}]
)
def test_settings_that_cannot_be_are_refused(tmp_path, odd):
    """No seconds of grace or between samples that make no sense, and no folder for them."""
    with pytest.raises(YardmasterError, match=next(iter(odd)).replace("_", "-")):
        run(workload({"id": "a", "command": "true"}), tmp_path / "run", **odd)
    assert not (tmp_path / "run").exists()


def test_an_idle_runner_costs_next_to_nothing(tmp_path):
    """While one job sleeps for two seconds, the runner uses less than a hundredth of a core."""
    script = (
        "import os, resource, sys; from pathlib import Path\n"
        "from yardmaster.live.local.commands import commands_of\n"
        "from yardmaster.live.local import runner\n"
        "used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])\n"
        "old = runner._Runner._work\n"
        "def work(self):\n"
        "    before = used(); old(self); print(used() - before)\n"
        "runner._Runner._work = work\n"
        "jobs = commands_of([{'id': 'a', 'command': 'sleep 2'}], name='w')\n"
        "runner.run_local(jobs, Path(sys.argv[1]), runner.Settings(gpus=1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=True, capture_output=True, text=True
    )
    starting_s = 0.03  # one launch and two decisions
    assert float(done.stdout) < 0.01 * 2 + starting_s
