"""The README tells the truth."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_example_runs_as_written(tmp_path: Path):
    """The Python example runs verbatim and prints a mean JCT and a table with all three names."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[0]) > 0
    for name in ("fifo+easy", "sjf+easy", "narrow-and-old+skip"):
        assert name in done.stdout


def test_named_commands_exist():
    """Every `make` target the README names exists (tests/docs looks at links and commands)."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_number_of_orders_is_right():
    """The README counts the orders as they are."""
    from yardmaster.schedulers.orders import ORDERS

    (count,) = re.findall(r"… (\d+) of them", README)
    built_in = [entry for entry in ORDERS.values() if "yardmaster" in entry.function.__module__]
    assert int(count) == len(built_in)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_readable_width(name: str):
    """Pages stay short enough to read."""
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= 150


def test_the_example_cluster_is_read(tmp_path):
    """The cluster file of docs/real-clusters.md is valid, and every rule in it counts."""
    from yardmaster.model.catalogue import load_cluster

    text = (ROOT / "docs" / "real-clusters.md").read_text("utf-8")
    path = tmp_path / "ours.toml"
    path.write_text(text.partition("```toml\n")[2].partition("```")[0], "utf-8")
    cluster = load_cluster(str(path))
    site = cluster.site
    assert cluster.gpus == 8 * 8 + 8 * 8 + 4 * 4
    assert {quota.tenant for quota in site.quotas} == {"team-0", "team-1"}
    assert (site.quantum_s, site.checkpoints.every_s, site.failures.retries) == (600.0, 1800.0, 3)
    assert (site.power.cap_w, len(site.power.price_per_kwh)) == (25_000.0, 24)
    assert set(cluster.node_sharing.tolist()) == {0, 1}
