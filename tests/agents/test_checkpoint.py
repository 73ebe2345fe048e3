"""Checkpoints come back as they were, or with a clear complaint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from yardmaster.agents.checkpoint import (
    FORMAT,
    Checkpoint,
    CheckpointError,
    read_checkpoint,
    write_checkpoint,
)


def some_checkpoint() -> Checkpoint:
    dice = np.random.default_rng(7)
    generator = torch.Generator().manual_seed(7)
    network = torch.nn.Linear(3, 2)
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(4, 3)).sum().backward()
    optimiser.step()
    fixed = np.arange(3)
    fixed.flags.writeable = False
    state = {
        "network": dict(network.state_dict()),
        "optimiser": optimiser.state_dict(),
        "torch": generator.get_state(),
        "dice": dice.bit_generator.state,
        "batch": {
            "floats": np.arange(6.0).reshape(2, 3),
            "bools": np.array([True, False]),
            "bytes": np.arange(3, dtype=np.uint8),
            "ints": np.arange(4, dtype=np.int32),
            "single": np.arange(6, dtype=np.float32).reshape(2, 3).T,
            "backwards": np.arange(5)[::-1],
            "fixed": fixed,
            "scalar": np.float64(0.25),
            "empty": np.zeros((0, 5), dtype=np.int64),
        },
        "nested": [(1, "two", None), {"three": 3.0}],
    }
    return Checkpoint(
        learner="ppo", config={"task": {"jobs": 5}}, state=state, standing={"steps": 12}
    )


def assert_same(left: object, right: object):
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        assert torch.equal(left, right)
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    else:
        assert left == right


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path):
    """Tensors, arrays of every kind, generator states and plain values survive the file."""
    path = tmp_path / "last.pt"
    written = some_checkpoint()
    write_checkpoint(path, written)
    read = read_checkpoint(path)
    assert (read.learner, read.config, read.standing) == ("ppo", written.config, written.standing)
    assert_same(read.state, written.state)
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If writing breaks off in the middle, the checkpoint before it is still whole."""
    path = tmp_path / "last.pt"
    write_checkpoint(path, some_checkpoint())
    before = path.read_bytes()

    def torn(_content, file):
        file.write(b"half a")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", torn)
    with pytest.raises(CheckpointError, match=r"Cannot write .*last\.pt.*No space left"):
        write_checkpoint(path, some_checkpoint())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def test_a_missing_file_is_named(tmp_path: Path):
    """The complaint about a checkpoint that is not there says which."""
    with pytest.raises(CheckpointError, match=r"There is no checkpoint .*none\.pt"):
        read_checkpoint(tmp_path / "none.pt")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_torn_file_is_refused(share: float, tmp_path: Path):
    """A file cut off anywhere is called damaged."""
    path = tmp_path / "torn.pt"
    write_checkpoint(path, some_checkpoint())
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match=r"torn\.pt is damaged, or not a checkpoint"):
        read_checkpoint(path)


def test_other_files_are_refused(tmp_path: Path):
    """Text, weights of other programs, and other versions are told apart."""
    path = tmp_path / "other.pt"
    path.write_text("hello")
    with pytest.raises(CheckpointError, match="damaged, or not a checkpoint"):
        read_checkpoint(path)
    torch.save({"weights": torch.ones(2)}, path)
    with pytest.raises(CheckpointError, match="not a checkpoint of yardmaster"):
        read_checkpoint(path)
    torch.save({"format": FORMAT, "version": 99}, path)
    with pytest.raises(CheckpointError, match="version 99"):
        read_checkpoint(path)
    torch.save({"format": FORMAT, "version": 1, "learner": "ppo"}, path)
    with pytest.raises(CheckpointError, match="has no config, state, standing"):
        read_checkpoint(path)


class Sprung:
    """Pickles as a call that would leave a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_code_in_a_checkpoint_does_not_run(tmp_path: Path):
    """A file that asks for a function call when read is refused, and the call does not happen."""
    path, trace = tmp_path / "evil.pt", tmp_path / "trace"
    torch.save({"format": FORMAT, "version": 1, "learner": Sprung(trace)}, path)
    with pytest.raises(CheckpointError, match="damaged, or not a checkpoint"):
        read_checkpoint(path)
    assert not trace.exists()
