"""Real jobs on a real Ray cluster of two nodes, through the loss of a node and of ourselves."""

from __future__ import annotations

import itertools
import signal
import time
from collections import Counter
from pathlib import Path

from yardmaster.live.audit import read_lines
from yardmaster.live.folder import AUDIT, read_json
from yardmaster.live.replay import read_log, replay_log


def lines(folder: Path, what: str) -> list[dict]:
    if not (folder / AUDIT).exists():
        return []
    return [line for line in read_lines(folder / AUDIT) if line["what"] == what]


def events(folder: Path, event: str) -> list[dict]:
    return [line for line in lines(folder, "job") if line["event"] == event]


def wait_for(condition, seconds: float = 60.0):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def spoken(job: str, file: Path, seconds: float) -> str:
    """Return a command that says when it begins and ends."""
    say = f'echo "$(date +%s.%N) {{}} {job} $YARDMASTER_NODE" >> {file}'
    return f"{say.format('begin')}; sleep {seconds}; {say.format('end')}"


def heard(file: Path, word: str) -> list[tuple[float, str, str]]:
    """Return (second, job, node) of every begin or end that was said."""
    said = [line.split() for line in file.read_text().splitlines()]
    return [(float(second), job, node) for second, told, job, node in said if told == word]


def test_the_order_is_the_schedulers_and_gpus_of_others_are_left_alone(
    live_run, ray_host, tmp_path
):
    """With one GPU taken by a stranger, jobs run shortest first, one at a time, on the other."""
    file = tmp_path / "said"
    rows = [
        {"id": f"j{n}", "estimate_s": float(10 - n), "command": spoken(f"j{n}", file, 0.1)}
        for n in range(4)
    ]
    ray_host.ask("take", "b")
    run = live_run([*rows, {"id": "bad", "estimate_s": 20.0, "command": "exit 3"}])
    run.start()
    result = run.result()
    ray_host.ask("give", "b")
    assert (result["state"], result["finished"], result["failed"]) == ("finished", 4, 1)
    assert [job for _, job, _ in heard(file, "begin")] == ["j3", "j2", "j1", "j0"]
    assert {node for _, _, node in heard(file, "begin")} == {"a"}
    assert all(one["slots"] == [0] for one in events(run.folder, "started"))
    spans = [(one["start_s"], one["end_s"]) for one in events(run.folder, "ended")]
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
    about = read_json(run.folder / "live.json")
    assert (about["kind"], [node["gpus"] for node in about["nodes"]]) == ("ray", [1, 1])
    likely = replay_log(run.folder)
    assert len(likely.predicted_end_s) == len(read_log(run.folder).jobs) == 5


def test_a_node_killed_mid_run_loses_nothing_and_runs_nothing_twice_at_once(
    live_run, ray_host, tmp_path
):
    """Jobs of the lost node are ended there before they begin again elsewhere, and all get done."""
    file = tmp_path / "said"
    rows = [{"id": f"j{n}", "command": spoken(f"j{n}", file, 2.0)} for n in range(3)]
    run = live_run(rows)
    run.start()
    wait_for(lambda: [one for one in events(run.folder, "started") if one["node"] == "b"])
    ray_host.ask("kill", "b")
    wait_for(lambda: [one for one in events(run.folder, "ended") if one["is_lost"]])
    ray_host.ask("add", "b")
    result = run.result()
    assert (result["state"], result["finished"], result["failed"]) == ("finished", 3, 0)
    assert Counter(job for _, job, _ in heard(file, "end")) == Counter(r["id"] for r in rows)
    begun = Counter(job for _, job, _ in heard(file, "begin"))
    (lost,) = [one["job"] for one in events(run.folder, "ended") if one["is_lost"]]
    assert begun.total() == 4
    assert begun[lost] == 2
    killed = read_json(run.folder / f"jobs/{lost}/attempt-1/exit.json")
    again_s = max(second for second, job, _ in heard(file, "begin") if job == lost)
    assert killed["exit_code"] == 137
    assert killed["end_unix_s"] < again_s
    reasons = [line["reason"] for line in lines(run.folder, "skip")]
    assert "node b is lost" in reasons


def test_killed_and_stopped_it_loses_no_job_and_runs_none_twice(live_run, tmp_path):
    """Killed -9 twice and taken up again, every job runs once; stopped ones begin again."""
    file = tmp_path / "said"
    rows = [{"id": f"j{n}", "command": spoken(f"j{n}", file, 0.8)} for n in range(4)]
    rows.append({"id": "late", "estimate_s": 99.0, "command": spoken("late", file, 2.0)})
    run = live_run(rows)
    run.start()
    wait_for(lambda: list(run.folder.glob("jobs/*/attempt-1/submission.json")))
    run.kill()  # sent, and nothing known of it
    run.start()
    wait_for(lambda: len(events(run.folder, "started")) >= 3)
    run.kill()
    process = run.start()
    wait_for(lambda: [one for one in events(run.folder, "started") if one["job"] == "late"])
    process.send_signal(signal.SIGTERM)
    stopped = run.result()
    assert stopped["state"] == "stopped"
    assert stopped["found_again"] >= 1
    run.start()
    result = run.result()
    assert (result["state"], result["finished"], result["failed"]) == ("finished", 5, 0)
    ids = [row["id"] for row in rows]
    again = [one["job"] for one in events(run.folder, "stopped")]
    assert "late" in again
    assert Counter(job for _, job, _ in heard(file, "end")) == Counter(ids)
    begun = Counter(job for _, job, _ in heard(file, "begin"))
    assert begun.keys() == set(ids)
    assert begun <= Counter(ids + again)  # one that had just begun may be stopped without a word
    told = Counter((one["job"], one["event"]) for one in lines(run.folder, "job"))
    assert {job: told[job, "ended"] for job in ids} == dict.fromkeys(ids, 1)
    assert {job: told[job, "started"] for job in ids} == {job: 1 + again.count(job) for job in ids}


def test_a_gpu_is_held_back_while_something_lives_on_there(live_run, tmp_path):
    """What escapes from a job keeps its GPU from the next one, and the reason says so."""
    file = tmp_path / "said"
    orphan = f"setsid sh -c 'sleep 3; date +%s.%N > {tmp_path}/gone' > /dev/null 2>&1 &"
    rows = [
        {"id": "leaves", "command": orphan + spoken("leaves", file, 0.3)},
        {"id": "other", "command": spoken("other", file, 5.5), "estimate_s": 2.0},
        {"id": "next", "command": spoken("next", file, 0.1), "estimate_s": 3.0},
    ]
    run = live_run(rows, "--node-folder", str(tmp_path / "elsewhere"))
    run.start()
    assert run.result()["finished"] == 3
    where = {job: (second, node) for second, job, node in heard(file, "begin")}
    assert where["next"][1] == where["leaves"][1] != where["other"][1]
    assert where["next"][0] > float((tmp_path / "gone").read_text())
    whys = [line["why"].get("next", "") for line in lines(run.folder, "decide")]
    assert any("held back, as process" in why and "of job leaves" in why for why in whys)
    assert (run.folder / "jobs/next/attempt-1/stdout.log").exists()
    assert (tmp_path / "elsewhere").is_dir()
