"""A trained policy, ready to run without torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from yardmaster.engine.picking.layout import Floats
from yardmaster.engine.picking.sight import Sight
from yardmaster.errors import YardmasterError
from yardmaster.model.workload import IntArray
from yardmaster.schedulers.learned.packing import pack
from yardmaster.schedulers.learned.policy_file import PolicyFile, read_policy


@dataclass(frozen=True, slots=True, eq=False)
class LearnedPolicy:
    """What a policy file holds, packed for the compiled forward pass."""

    path: Path
    file: PolicyFile
    sight: Sight
    net: IntArray
    weights: Floats
    scratch: int
    """32-bit reals the forward pass needs to work in."""


_loaded: dict[tuple[str, int, int], LearnedPolicy] = {}
"""Policies read before, by path, time of change and size: a comparison asks for one many times."""


def load_policy(path: Path) -> LearnedPolicy:
    """Read a policy file; a folder of `train` stands for the best policy in it.

    Raises:
        YardmasterError: if there is no such file, or it is not a policy this version can run.
    """
    if path.is_dir():
        path /= "policy.npz"
    try:
        there = path.stat()
    except OSError:
        raise YardmasterError(f"There is no policy file {path}.") from None
    key = (str(path.resolve()), there.st_mtime_ns, there.st_size)
    if key not in _loaded:
        _loaded[key] = _read(path)
    return _loaded[key]


def _read(path: Path) -> LearnedPolicy:
    file = read_policy(path)
    try:
        sight = Sight.from_table(file.sight)
    except (YardmasterError, TypeError) as error:
        raise YardmasterError(f"{path}: {error}") from None
    if sight.layout() != file.layout:
        raise YardmasterError(
            f"{path}: the network was made for another observation than the file describes."
        )
    net, weights, scratch = pack(file)
    return LearnedPolicy(path, file, sight, net, weights, int(scratch))
