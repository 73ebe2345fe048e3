"""How Yardmaster behaves beside a real Slurm: speed, load, and what survives kills.

    python benchmarks/live_slurm.py                    # everything, some twenty minutes
    python benchmarks/live_slurm.py --kills 10 --jobs 300

Starts a small cluster of its own (see `yardmaster live minicluster`) and removes it. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

from yardmaster.live.decision import Decider
from yardmaster.live.slurm import reading
from yardmaster.live.slurm.changes import SetFactor, apply_changes
from yardmaster.live.slurm.commands import Slurm
from yardmaster.live.slurm.driving import Settings
from yardmaster.live.slurm.ledger import Ledger
from yardmaster.live.slurm.minicluster.cluster import MiniCluster
from yardmaster.live.slurm.minicluster.documents import Shape
from yardmaster.live.slurm.observing import Allowed, observe
from yardmaster.live.slurm.restoring import restore
from yardmaster.live.slurm.session import SlurmSession

JOB = """#!/bin/sh
echo "start $SLURM_JOB_ID $(date +%s.%N)" >> {log}
sleep {seconds}
echo "end $SLURM_JOB_ID $(date +%s.%N)" >> {log}
"""


class Bench:
    """A small cluster, and jobs that write down when they begin and end."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.cluster = MiniCluster(Path(tempfile.mkdtemp(prefix="ym-")) / "mini", shape)
        self.log = self.cluster.folder.parent / "runs.txt"
        self.slurm = Slurm(environment={"SLURM_CONF": str(self.cluster.conf)})
        self.dice = random.Random(seed)

    def __enter__(self) -> Self:
        self.cluster.up()
        self.log.touch()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.down()
        shutil.rmtree(self.cluster.folder.parent)

    def submit(self, gpus: int, seconds: float, minutes: int, *options: str) -> str:
        """Submit one job and return its number."""
        text = JOB.format(log=self.log, seconds=seconds)
        answer = self.cluster.run(
            "sbatch", "--parsable", f"--gpus={gpus}", "-N1", f"--time={minutes}", "--mem=1M",
            "--output=/dev/null", "--chdir=/tmp", *options, text=text,
        )  # fmt: skip
        if answer.returncode:
            raise RuntimeError(answer.stderr)
        return answer.stdout.strip()

    def runs(self, word: str) -> Counter[str]:
        """Return how often each job began or ended."""
        return Counter(
            line.split()[1] for line in self.log.read_text().splitlines() if line.startswith(word)
        )

    def drain(self, limit_s: float) -> bool:
        """Wait until the queue is empty."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            answer = self.cluster.run("squeue", "-h", "-o", "%i")
            if answer.returncode == 0 and not answer.stdout.strip():
                return True
            time.sleep(0.5)
        return False

    def yardmaster(
        self, folder: Path, scheduler: str, interval_s: float, *options: str
    ) -> subprocess.Popen[bytes]:
        """Start Yardmaster beside the cluster, as a user would."""
        command = [
            sys.executable, "-m", "yardmaster", "live", "slurm", "--apply", "-s", scheduler,
            "--out", str(folder), "--interval-s", str(interval_s), "--quiet", *options,
        ]  # fmt: skip
        return subprocess.Popen(  # noqa: S603 - our own command
            command, env=self.cluster.environment, stderr=subprocess.DEVNULL
        )

    def waits(self, jobs: list[str]) -> list[float]:
        """Return how long each job waited, by the accounts."""
        text = self.slurm.read(
            "sacct", "-n", "-X", "-P", "-j", ",".join(jobs), "-o", "Submit,Start"
        )
        rows = [line.split("|") for line in text.splitlines()]
        return [float(start) - float(submit) for submit, start in rows if start.isdecimal()]


def speed(bench: Bench, waiting: int) -> dict[str, Any]:
    """Measure reading, deciding and changing with many jobs in the queue."""
    for _ in range(bench.cluster.shape.nodes):
        bench.submit(bench.cluster.shape.gpus, 3600, 600)
    for _ in range(waiting):
        bench.submit(bench.dice.randint(1, 8), 1, bench.dice.randint(1, 500))
    time.sleep(2)
    result: dict[str, Any] = {"waiting": waiting, "load": round(os.getloadavg()[0], 1)}
    for name in ("sjf+easy", "policy:slowdown-clairvoyant"):
        decider = Decider(name)
        times = []
        for _ in range(22):
            began = time.perf_counter()
            seen = observe(bench.slurm, Allowed())
            read_s = time.perf_counter() - began
            decider.decide(seen.state)
            times.append((time.perf_counter() - began, read_s))
        both, reads = zip(*times[1:], strict=True)
        result[name] = {
            "observe_and_decide_ms": round(1000 * statistics.median(both), 1),
            "fastest_ms": round(1000 * min(both), 1),
            "observe_ms": round(1000 * statistics.median(reads), 1),
        }
    result["squeue_alone_ms"] = _alone_ms(bench, reading.queue_command())
    jobs = [str(job) for job in seen.state.jobs.id[seen.state.orderable][:1000]]
    changes = [SetFactor(job, 1000 + place) for place, job in enumerate(jobs)]
    began = time.perf_counter()
    outcomes = apply_changes(bench.slurm, changes)
    result["changes"] = len(changes)
    result["changes_done"] = sum(one.outcome == "done" for one in outcomes)
    result["changes_s"] = round(time.perf_counter() - began, 3)
    folder = bench.cluster.folder.parent / "speed"
    folder.mkdir()
    ledger = Ledger(folder)
    began = time.perf_counter()
    restored = restore(bench.slurm, ledger, everyone=True)
    result["restored"], result["restore_s"] = restored.zeroed, round(time.perf_counter() - began, 3)
    bench.cluster.run("scancel", f"--user={os.environ.get('USER', 'root')}", timeout_s=120)
    bench.drain(120)
    return result


def _alone_ms(bench: Bench, command: tuple[str, ...]) -> float:
    """Return how long one of Slurm's programs takes by itself."""
    times = []
    for _ in range(11):
        began = time.perf_counter()
        bench.slurm.read(*command)
        times.append(time.perf_counter() - began)
    return round(1000 * statistics.median(times), 1)


def soak(bench: Bench, ticks: int) -> dict[str, Any]:
    """Tick as fast as it goes beside a queue that lives, and see whether anything grows.

    Jobs of one to three seconds come all the time, wait, run and end; every fifth tick brings one,
    unless many wait already.
    """
    bench.log.write_text("")
    folder = bench.cluster.folder.parent / "soak"
    settings = Settings(mode="apply", interval_s=0.1)
    session = SlurmSession(bench.slurm, "sjf+easy", settings, folder)
    jobs, took, waiting, changes, skipped = list[str](), list[float](), 0, 0, 0
    seen: dict[str, dict[str, float]] = {}
    for number in range(ticks):
        if number % 5 == 0 and waiting < 60:
            jobs.append(bench.submit(1 + number % 8, 1 + number % 3, 1 + number % 50))
        began = time.perf_counter()
        tick = session.driver.tick()
        took.append(time.perf_counter() - began)
        skipped += bool(tick.skipped)
        changes += sum(one.outcome == "done" for one in tick.outcomes)
        if tick.observation is not None:
            waiting = len(tick.observation.state.waiting)
        if number in {ticks // 20, ticks // 2, ticks - 1}:  # by then everything has been loaded
            seen[f"after_{number + 1}"] = _size()
    session.run(ticks=ticks + 1)
    drained = bench.drain(300)
    starts, ends = bench.runs("start"), bench.runs("end")
    return {
        "ticks": ticks,
        "skipped": skipped,
        "jobs": len(jobs),
        "factors_given": changes,
        "median_tick_ms": round(1000 * statistics.median(took), 1),
        "minutes": round(sum(took) / 60, 1),
        **seen,
        "drained": drained,
        "ran_exactly_once": sum(starts[job] == 1 and ends[job] == 1 for job in jobs),
    }


def _size() -> dict[str, float]:
    """Return the resident memory and the open files of this process."""
    status = Path("/proc/self/status").read_text()
    kib = int(status.partition("VmRSS:")[2].split()[0])
    return {
        "rss_mib": round(kib / 1024, 1),
        "open_files": len(list(Path("/proc/self/fd").iterdir())),
    }


def idle(bench: Bench, seconds: float, interval_s: float) -> dict[str, Any]:
    """Measure the CPU time of Yardmaster and its children while nothing happens."""
    folder = bench.cluster.folder.parent / "idle"
    process = bench.yardmaster(folder, "sjf+easy", interval_s)
    while not (folder / "heartbeat.json").exists():  # loading and compiling are not idling
        time.sleep(0.5)
    time.sleep(2)
    before = _cpu_s(process.pid)
    time.sleep(seconds)
    used = _cpu_s(process.pid) - before
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    return {
        "interval_s": interval_s,
        "seconds": seconds,
        "cpu_percent": round(100 * used / seconds, 2),
    }


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def loop(bench: Bench, jobs: int, scheduler: str | None, name: str) -> dict[str, Any]:
    """Run the same jobs with and without Yardmaster and compare their waits."""
    dice = random.Random(1)
    folder = bench.cluster.folder.parent / f"loop-{name}"
    process = bench.yardmaster(folder, scheduler, 1.0) if scheduler else None
    if process:
        time.sleep(5)
    numbers = []
    for _ in range(jobs):
        minutes = dice.choice([1, 2, 4, 8, 16])
        numbers.append(bench.submit(dice.choice([1, 2, 4, 8]), 0.5 * minutes, minutes))
    drained = bench.drain(600)
    if process:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    waits = bench.waits(numbers)
    return {"drained": drained, "jobs": len(waits), "mean_wait_s": round(statistics.mean(waits), 2)}


def kills(
    bench: Bench, jobs: int, victims: list[str], *, with_yardmaster: bool, seconds: float
) -> dict[str, Any]:
    """Submit jobs and kill Yardmaster, a node's daemon or the controller at random moments.

    Slurm itself loses the last seconds if its controller is killed, jobs that were just submitted
    and ends of jobs alike: what that costs shows without Yardmaster (`with_yardmaster=False`).
    """
    dice = random.Random(2)
    bench.log.write_text("")
    folder = bench.cluster.folder.parent / f"kills-{with_yardmaster}-{len(victims)}"
    process = bench.yardmaster(folder, "sjf+easy", 0.3) if with_yardmaster else None
    numbers = [
        bench.submit(dice.choice([1, 2, 4]), seconds, dice.randint(1, 5)) for _ in range(jobs)
    ]
    time.sleep(8)  # so that no submission is lost
    dead: list[tuple[str, float]] = []
    for victim in victims:
        time.sleep(dice.uniform(0.3, 4.0))
        if victim == "yardmaster" and process is not None:
            process.kill()
            process.wait()
            process = bench.yardmaster(folder, "sjf+easy", 0.3)
        elif victim == "node":
            node = dice.choice(bench.cluster.shape.node_names)
            dead.append((node, time.time()))
            bench.cluster.kill(node)
            bench.cluster.start(node)
        elif victim == "controller":
            bench.cluster.kill("slurmctld")
            bench.cluster.start("slurmctld")
            bench.cluster.wait_until_ready()
    result: dict[str, Any] = {"with_yardmaster": with_yardmaster, "jobs": len(numbers)}
    result["kills"] = dict(Counter(victims))
    if process is not None:
        process.kill()
        process.wait()
        log = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
        result["decisions"] = sum(line["what"] == "decide" for line in log)
        result["logged_changes"] = sum(line.get("operation") == "factor" for line in log)
        began = time.monotonic()
        restored = restore(bench.slurm, Ledger(folder))
        result["restore_s"] = round(time.monotonic() - began, 2)
        result["factors_taken_away"], result["factors_left"] = restored.zeroed, restored.left
    result["drained"] = bench.drain(480)
    missing = [job for job in numbers if job not in bench.runs("end")]
    result["never_ended"] = len(missing)
    result["launched_as_their_node_was_killed"] = _launched_into(bench, missing, dead)
    result["ended_twice"] = sum(count > 1 for count in bench.runs("end").values())
    result["began_twice"] = sum(count > 1 for count in bench.runs("start").values())
    return result


def requeue(bench: Bench) -> dict[str, Any]:
    """Let a short job have a long one requeued, and measure what that costs the long one."""
    bench.log.write_text("")
    nodes, gpus = bench.cluster.shape.nodes, bench.cluster.shape.gpus
    stay = [bench.submit(gpus, 3600, 600, "--no-requeue") for _ in range(nodes - 1)]
    goes = bench.submit(gpus, 45, 600)
    while bench.runs("start").total() < nodes:
        time.sleep(0.1)
    folder = bench.cluster.folder.parent / "requeue"
    process = bench.yardmaster(
        folder, "srpt+preemptive", 1.0, "--preempt-requeue", "--partition", "main",
        "--requeue-least-run-s", "5",
    )  # fmt: skip
    time.sleep(8)
    submitted = time.time()
    short = bench.submit(gpus, 1, 1)
    deadline = time.monotonic() + 400
    while bench.runs("end")[goes] < 1 and time.monotonic() < deadline:
        time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    log = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    stops = [line for line in log if line.get("operation") == "requeue"]
    at = {
        (word, job): [float(one.split()[2]) for one in lines if one.split()[:2] == [word, job]]
        for lines in [bench.log.read_text().splitlines()]
        for word in ("start", "end")
        for job in (goes, short)
    }
    result = {
        "stops": [(line["job"], line["outcome"]) for line in stops] == [(goes, "done")],
        "short_started_after_s": round(at["start", short][0] - submitted, 1),
        "stopped_until_started_again_s": round(at["start", goes][-1] - stops[0]["unix_s"], 1),
        "lost_work_s": round(stops[0]["unix_s"] - at["start", goes][0], 1),
        "long_began": len(at["start", goes]),
        "long_ended": len(at["end", goes]),
        "others_began": [bench.runs("start")[job] for job in stay],
    }
    bench.cluster.run("scancel", *stay)
    bench.drain(60)
    return result


def _launched_into(bench: Bench, jobs: list[str], dead: list[tuple[str, float]]) -> int:
    """Return how many jobs were being launched by a node's daemon when that was killed.

    Slurm loses those by itself: the daemon dies between the allocation and the first step.
    """
    if not jobs:
        return 0
    text = bench.slurm.read("sacct", "-n", "-X", "-P", "-j", ",".join(jobs), "-o", "Start,NodeList")
    rows = [line.split("|") for line in text.splitlines()]
    return sum(
        any(node == name and abs(at - float(start)) <= 2.0 for node, at in dead)
        for start, name in rows
        if start.isdecimal()
    )


def main() -> None:
    """Run all parts and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000, help="jobs of the kill test")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--waiting", type=int, default=5000)
    parser.add_argument("--ticks", type=int, default=10_000, help="ticks of the soak")
    parser.add_argument("--idle-s", type=float, default=120.0)
    parser.add_argument("--parts", default="speed,soak,idle,loop,requeue,kills,crashes,control")
    options = parser.parse_args()
    parts = options.parts.split(",")
    results: dict[str, Any] = {}

    def note(name: str, value: Any) -> None:
        results[name] = value
        print(json.dumps({name: value}), flush=True)

    with Bench(Shape(), seed=0) as bench:
        if "speed" in parts:
            note("speed", speed(bench, options.waiting))
        if "idle" in parts:
            note("idle", idle(bench, options.idle_s, 10.0))
        if "soak" in parts:
            note("soak", soak(bench, options.ticks))
        if "loop" in parts:
            note("loop_without", loop(bench, 120, None, "without"))
            note("loop_with", loop(bench, 120, "sjf+easy", "with"))
        if "requeue" in parts:
            note("requeue", requeue(bench))
        dice = random.Random(3)
        many = dice.choices(["yardmaster", "node"], [9, 1], k=options.kills)
        few = dice.choices(["yardmaster", "controller"], k=max(options.kills // 10, 1))
        for name, victims, is_with in (
            ("kills", many, True), ("crashes", few, True), ("control", few, False),
        ):  # fmt: skip
            if name in parts:
                jobs = options.jobs if name == "kills" else options.jobs // 5
                note(name, kills(bench, jobs, victims, with_yardmaster=is_with, seconds=1.5))
    note("peak_rss_mib", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


if __name__ == "__main__":
    main()
