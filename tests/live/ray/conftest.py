"""What the tests of live Ray share: a real cluster of two nodes on this host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Ray is run in a process of its own, as users do: it starts threads and warns about its plans.
CLUSTER = """
import json, os, sys, warnings

warnings.simplefilter("ignore")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
answers, sys.stdout = sys.stdout, sys.stderr  # Ray tells of lost nodes on standard output
from ray.cluster_utils import Cluster

QUICK = {  # a dead node is noticed after 2 s, not after 19
    "health_check_initial_delay_ms": 500, "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000, "health_check_failure_threshold": 3,
}
cluster = Cluster(initialize_head=True, head_node_args={
    "num_cpus": 2, "num_gpus": 1, "node_name": "a", "include_dashboard": False,
    "_system_config": QUICK,
})
cluster.connect()
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

class Stranger:
    def there(self):
        return True

nodes, strangers = {}, {}
for line in sys.stdin:
    word, name = line.split()
    if word == "add":
        nodes[name] = cluster.add_node(num_cpus=1, num_gpus=1, node_name=name)
        cluster.wait_for_nodes()
    elif word == "kill":
        cluster.remove_node(nodes.pop(name), allow_graceful=False)
    elif word == "take":
        ids = {one["NodeName"]: one["NodeID"] for one in ray.nodes() if one["Alive"]}
        pinned = NodeAffinitySchedulingStrategy(ids[name], soft=False)
        one = ray.remote(num_gpus=1, scheduling_strategy=pinned)(Stranger).remote()
        ray.get(one.there.remote())
        strangers[name] = one
    elif word == "give":
        ray.kill(strangers.pop(name))
    print(json.dumps({"address": cluster.address}), file=answers, flush=True)
cluster.shutdown()
"""


@dataclass
class RayHost:
    """Nodes on this host: a with one pretended GPU, and whoever is added, with one each."""

    process: subprocess.Popen[str]
    address: str = ""

    def ask(self, word: str, node: str) -> None:
        """Have a node added or killed (-9), or its GPU taken or given back by somebody else."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{word} {node}\n")
        self.process.stdin.flush()
        self.address = json.loads(self.process.stdout.readline())["address"]


@pytest.fixture(scope="session")
def ray_host(tmp_path_factory) -> Iterator[RayHost]:
    """Start a cluster; node b is added and lost by tests."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'yardmaster[ray]'")
    log = (tmp_path_factory.mktemp("ray") / "cluster.log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        env=os.environ | {"RAY_TMPDIR": "/tmp"},  # noqa: S108  (paths of sockets must be short)
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
    )  # fmt: skip
    host = RayHost(process)
    host.ask("add", "b")
    yield host
    process.communicate(timeout=60)
    log.close()


class LiveRun:
    """`yardmaster live ray` on a workload, as often as it is started."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.folder, self._arguments = folder, arguments
        self._log = folder.with_suffix(".log").open("a+")
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """Start it, or take it up again."""
        self.process = subprocess.Popen(
            self._arguments, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        return self.process

    def kill(self) -> None:
        """End ourselves as nobody would wish to be ended."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def result(self) -> dict[str, Any]:
        """Wait for its end; return what it says."""
        assert self.process is not None
        told, _ = self.process.communicate(timeout=90)
        assert told, self.log()
        return json.loads(told)

    def log(self) -> str:
        """Return what it told on the way."""
        return self.folder.with_suffix(".log").read_text()

    def close(self) -> None:
        """Leave nothing running."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self._log.close()


@pytest.fixture
def live_run(ray_host, tmp_path):
    """Return what writes a workload down and is ready to run it on the cluster."""
    runs: list[LiveRun] = []

    def made(rows: list[dict], *more: str) -> LiveRun:
        lines = ["[defaults]", "estimate_s = 1.0"]
        for row in rows:
            lines += ["[[job]]", *(f"{name} = {json.dumps(value)}" for name, value in row.items())]
        file = tmp_path / "jobs.toml"
        file.write_text("\n".join(lines) + "\n")
        folder = tmp_path / "run"
        command = [
            sys.executable, "-m", "yardmaster", "live", "ray", str(file), "--out", str(folder),
            "--address", ray_host.address, "--json", "--grace-s", "1", *more,
        ]  # fmt: skip
        runs.append(LiveRun(folder, command))
        return runs[-1]

    yield made
    for run in runs:
        run.close()
