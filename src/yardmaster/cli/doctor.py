"""`yardmaster doctor`: what this machine can do, and a quick self-test."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from yardmaster.cli.console import say, say_json
from yardmaster.cli.options import JsonOption
from yardmaster.errors import YardmasterError

_LIBRARIES = ("numpy", "numba", "polars", "pydantic", "cyclopts", "rich", "simpy", "matplotlib")


class Finding(NamedTuple):
    """One line of the examination; `fix` is what to do if it is not well."""

    is_well: bool
    what: str
    found: str
    fix: str = ""


def doctor(*, json: JsonOption = False) -> None:
    """Show versions, cores, where training runs, the cache and write access, and run a short test.

    Exits with 1 if something needed is missing; nobody needs a GPU.
    """
    findings = [
        _python(),
        *map(_library, _LIBRARIES),
        _cores(),
        _training(),
        _cache(),
        _write_access(),
        _self_test(),
    ]
    if json:
        say_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            mark = "ok" if finding.is_well else "!!"
            fix = f"  → {finding.fix}" if not finding.is_well else ""
            say(f"{mark}  {finding.what:<18} {finding.found}{fix}")
    if not all(finding.is_well for finding in findings):
        sys.exit(1)


def _python() -> Finding:
    is_well = sys.version_info >= (3, 11)
    return Finding(is_well, "Python", platform.python_version(), "install Python 3.11 or newer")


def _library(name: str) -> Finding:
    try:
        return Finding(is_well=True, what=name, found=version(name))
    except PackageNotFoundError:
        return Finding(is_well=False, what=name, found="missing", fix=f"pip install {name}")


def _cores() -> Finding:
    return Finding(is_well=True, what="processor cores", found=str(os.cpu_count()))


def _training() -> Finding:
    """Say where `train` would run and why; a machine without a GPU is well all the same."""
    from yardmaster.engine.gpu.availability import gpu_status

    if find_spec("torch") is None:
        found = "not here, torch is missing: pip install 'yardmaster[rl]'"
    elif not _torch_has_cuda():
        found = "on the CPU: torch finds no CUDA device"
    else:
        status = gpu_status()
        whole = "network on CUDA with --device cuda, environments on the CPU"
        if status.is_usable:
            whole = "on CUDA with --device cuda, ppo and meta-dqn with their environments"
        found = f"{whole}: {status.why}"
    return Finding(is_well=True, what="training", found=found)


def _torch_has_cuda() -> bool:
    from yardmaster.agents.tensors import torch_device

    try:
        torch_device("cuda")
    except YardmasterError:
        return False
    return True


def _cache() -> Finding:
    from yardmaster.engine.compilation import cache_folder, is_cached

    state = "compiled before" if is_cached() else "not compiled yet: the first large run will"
    return Finding(is_well=True, what="compiled core", found=f"{state} ({cache_folder()})")


def _write_access() -> Finding:
    folder = Path.cwd()
    is_well = os.access(folder, os.W_OK)
    return Finding(is_well, "working folder", str(folder), "go to a folder you may write to")


def _self_test() -> Finding:
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.schedulers.simulation import simulate
    from yardmaster.workloads.synthetic import generate

    begun = time.perf_counter()
    cluster = load_cluster("demo")
    workload = generate("venus-like", jobs=200, seed=0, gpus=cluster.gpus, load=0.9)
    core = simulate(workload, cluster, "sjf+easy", compile_core="never")
    reference = simulate(workload, cluster, "sjf+easy", engine="simpy")
    agree = core.fingerprint() == reference.fingerprint()
    took = time.perf_counter() - begun
    found = (
        f"core and SimPy reference {'agree' if agree else 'DISAGREE'} on 200 jobs ({took:.1f} s)"
    )
    return Finding(agree, "self-test", found, "please report this")
