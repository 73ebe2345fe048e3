"""The small cluster comes up anywhere, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.slurm.minicluster import daemons
from yardmaster.live.slurm.minicluster.cluster import PROGRAMS, MiniCluster, missing_packages
from yardmaster.live.slurm.minicluster.documents import Shape

needs_slurm = pytest.mark.skipif(
    bool(missing_packages()), reason=f"needs a real Slurm: {', '.join(missing_packages())}"
)


@needs_slurm
def test_down_leaves_nothing_behind():
    """With a job at work, `down` ends every process and removes the folder."""
    place = Path(tempfile.mkdtemp(prefix="ym-"))
    cluster = MiniCluster(place / "mini", Shape(nodes=1, gpus=2))
    cluster.up()
    pids = [daemons.pid_of(name, cluster.folder) for name in cluster.daemon_names]
    assert all(pids)
    with pytest.raises(YardmasterError, match="not empty"):
        MiniCluster(place / "mini").up()
    job = "#!/bin/sh\nsleep 300\n"
    cluster.run("sbatch", "--gpus=1", "--mem=1M", "-o", "/dev/null", "--chdir=/tmp", text=job)
    cluster.down()
    assert not cluster.folder.exists()
    assert not list(daemons.strays(cluster.folder))
    assert not [pid for pid in pids if _is_alive(pid)]
    cluster.down()  # what is not there is no mistake
    shutil.rmtree(place)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without the programs, nothing is begun and the packages to install are told."""
    monkeypatch.setattr(shutil, "which", lambda *_args, **_more: None)
    assert set(missing_packages()) == set(PROGRAMS.values())
    with pytest.raises(YardmasterError, match="apt-get install munge"):
        MiniCluster(tmp_path / "mini").up()
    assert not (tmp_path / "mini").exists()


@needs_slurm
def test_unfit_folders_are_refused():
    """Too long a path for sockets, a path Slurm cannot read, and somebody's own folder."""
    with pytest.raises(YardmasterError, match="too long"):
        MiniCluster(Path(tempfile.gettempdir()) / ("x" * 90)).up()
    with pytest.raises(YardmasterError, match="such signs"):
        MiniCluster(Path(tempfile.gettempdir()) / "a b").up()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mine").touch()
        with pytest.raises(YardmasterError, match="left alone"):
            MiniCluster(Path(folder)).down()
        assert (Path(folder) / "mine").exists()


def test_a_process_id_used_again_is_not_ours(tmp_path: Path):
    """A remembered id that now belongs to another process is never sent a signal."""
    (tmp_path / "pids").mkdir()
    (tmp_path / "pids" / "one").write_text(f"{os.getpid()} 1\n")
    assert daemons.pid_of("one", tmp_path) is None
    assert not daemons.send("one", tmp_path, daemons.signal.SIGKILL)
