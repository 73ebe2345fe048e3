"""Experiments on a Ray cluster: the same bytes as here, whichever machines go away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'yardmaster[ray]'")

# Ray is run in a process of its own, as users do: it starts threads and warns about its plans.
SCRIPT = """
import json, logging, os, sys, warnings
from pathlib import Path

warnings.simplefilter("ignore")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster

from yardmaster.experiments.suite import ray_engine
from yardmaster.experiments.suite.document import load_suite
from yardmaster.experiments.suite.run import run_suite


QUICK = {  # a dead node is noticed after 2 s, not after 19
    "health_check_initial_delay_ms": 500, "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000, "health_check_failure_threshold": 3,
}


def main(document, folder, stuck_on):
    cluster = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 1, "include_dashboard": False, "_system_config": QUICK,
    })
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    Path(stuck_on).write_text(second.node_id)
    news, stuck = {"losses": 0}, Path(f"{stuck_on}.stuck")
    waited = ray_engine.RayEngine.finished

    def finished(self, tickets):
        found = waited(self, tickets)
        news["losses"] += sum(outcome is None for outcome in found.values())
        if stuck.is_file():
            stuck.unlink()
            cluster.remove_node(second, allow_graceful=False)
        return found

    ray_engine.RayEngine.finished = finished
    try:
        result = run_suite(
            load_suite(document), Path(folder), engine="ray", address=cluster.address
        )
    finally:
        cluster.shutdown()
    news |= {"made": result.made, "failed": [failure.reason for failure in result.failures]}
    print(json.dumps(news))


main(*sys.argv[1:])
"""

STUCK = """
import sys, time
from pathlib import Path

from patience import LONG_S

def stuck(jobs):
    if "ray" in sys.modules:
        here = sys.modules["ray"].get_runtime_context().get_node_id()
        if here == Path({place!r}).read_text():
            Path({place!r} + ".stuck").touch()
            time.sleep(LONG_S)
    return -jobs.submit_s
"""
"""An order that never gets done on one of the nodes, so that there is something to be lost.

It leans on a module beside it, which travels too."""


def test_a_node_killed_mid_run_loses_nothing(small, tmp_path: Path):
    """Two nodes, one is killed: its batches are made by the other, and the table is the same."""
    import json

    from yardmaster.experiments.suite.run import run_suite

    place = tmp_path / "node.txt"
    file = tmp_path / "own" / "stuck.py"
    file.parent.mkdir()
    file.write_text(STUCK.format(place=str(place)))
    (file.parent / "patience.py").write_text("LONG_S = 600")
    suite = small.with_changes(schedulers=("sjf+skip", f"{file}:stuck+skip"))
    document = tmp_path / "stuck.toml"
    document.write_text(suite.to_toml())
    script = tmp_path / "two_nodes.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, script, document, tmp_path / "ray", place],
        env=os.environ | {"RAY_TMPDIR": "/tmp"},  # noqa: S108  (paths of sockets must be short)
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    news = json.loads(ended.stdout.splitlines()[-1])
    assert news["losses"] > 0
    assert (news["made"], news["failed"]) == (28, [])
    run_suite(suite, tmp_path / "local", workers=1)
    name = "results.parquet"
    assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()


def test_no_cluster_at_the_address(small, tmp_path: Path):
    """A cluster that is not there is an error that names it."""
    script = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from pathlib import Path\n"
        "from yardmaster.experiments.suite.document import load_suite\n"
        "from yardmaster.experiments.suite.run import run_suite\n"
        "suite, folder = load_suite(sys.argv[1]), Path(sys.argv[2])\n"
        "run_suite(suite, folder, engine='ray', address='127.0.0.1:1')\n"
    )
    document = tmp_path / "small.toml"
    document.write_text(small.to_toml())
    ended = subprocess.run(
        [sys.executable, "-c", script, document, tmp_path / "out"],
        env=os.environ | {"RAY_TMPDIR": str(tmp_path), "RAY_ADDRESS": ""},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "Cannot connect to Ray at 127.0.0.1:1" in ended.stderr
