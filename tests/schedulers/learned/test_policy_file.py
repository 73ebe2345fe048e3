"""Policies survive a trip to disk, and what is no policy is refused with a reason."""

import json
import pickle
import zipfile

import numpy as np
import pytest

from yardmaster.engine.picking.layout import Layout
from yardmaster.errors import YardmasterError
from yardmaster.schedulers.learned.policy_file import (
    PolicyFile,
    PolicyFileError,
    read_policy,
    write_policy,
)

LAYOUT = Layout(3, ("gpus", "wait"), 2, ("idle", "queue"), 1, 7, (0, 9))


def policy() -> PolicyFile:
    weights = {
        "hidden.0.weight": np.arange(40, dtype=np.float32).reshape(10, 4) / 7,
        "hidden.0.bias": np.array([0.1, -1e-30, 3e30, 0.0], dtype=np.float32),
    }
    sight = {"lookahead": "sorted", "ranks": ["sjf", "saf"], "scale_s": 0.1}
    return PolicyFile("mlp", LAYOUT, sight, weights, {"learner": "ppo", "größe": 3})


def rewrite(path, change) -> None:
    """Change the header or the arrays of a policy file."""
    with np.load(path) as stored:
        content = {name: stored[name] for name in stored.files}
    header = json.loads(content["header"].tobytes())
    change(header, content)
    content["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **content)


def test_a_policy_comes_back_as_it_was(tmp_path):
    """Everything is read as it was written, to the bit, and nothing else is left in the folder."""
    write_policy(tmp_path / "best.policy", policy())
    found = read_policy(tmp_path / "best.policy")
    assert [path.name for path in tmp_path.iterdir()] == ["best.policy"]
    for name in ("architecture", "layout", "sight", "about"):
        assert getattr(found, name) == getattr(policy(), name)
    assert list(found.weights) == list(policy().weights)
    for name, array in policy().weights.items():
        assert found.weights[name].dtype == np.float32
        assert np.array_equal(found.weights[name], array)


def test_the_same_policy_is_the_same_file(tmp_path):
    """Two files of one policy have the same content."""
    for name in ("a", "b"):
        write_policy(tmp_path / name, policy())
    first, second = (zipfile.ZipFile(tmp_path / name) for name in ("a", "b"))
    with first, second:
        for name in first.namelist():
            assert first.read(name) == second.read(name)


def test_a_failed_write_keeps_the_old_file(tmp_path):
    """What cannot be written, here for want of plain values, leaves the file that was there."""
    path = tmp_path / "policy"
    write_policy(path, policy())
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_policy(path, PolicyFile("mlp", LAYOUT, {"odd": object()}, {}))
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_missing_files_are_named_with_their_neighbours(tmp_path):
    """A misspelt name is answered with the nearest file."""
    write_policy(tmp_path / "best.policy", policy())
    with pytest.raises(YardmasterError, match=r"Did you mean 'best\.policy'"):
        read_policy(tmp_path / "bets.policy")


@pytest.mark.parametrize(
    "content", [b"", b"no policy", b"PK\x03\x04 broken", pickle.dumps({"a": 1})], ids=repr
)
def test_other_files_are_no_policies(tmp_path, content):
    """Anything that is no archive of arrays is refused, and nothing in it is run."""
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(PolicyFileError, match="no policy file"):
        read_policy(tmp_path / "x")


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.95])
def test_truncated_files_are_damaged(tmp_path, keep):
    """A file that was cut off is not read as far as it goes."""
    path = tmp_path / "x"
    write_policy(path, policy())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(PolicyFileError, match="damaged"):
        read_policy(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, _: header.update(version=2), "of version 2; this program reads version 1"),
        (lambda header, _: header.update(format="other"), "no policy file"),
        (lambda header, _: header.pop("layout"), "damaged policy file"),
        (lambda header, _: header["layout"].pop("window"), "damaged policy file"),
        (lambda header, _: header["layout"].update(wide=1), "damaged policy file"),
        (lambda _, content: content.pop("hidden.0.bias"), r"lacks hidden\.0\.bias"),
        (
            lambda _, content: content.update({"hidden.0.bias": np.zeros(4)}),
            r"hidden\.0\.bias is float64",
        ),
        (
            lambda _, content: content.update({"hidden.0.bias": np.zeros(3, np.float32)}),
            r"\[3\] instead of float32 \[4\]",
        ),
        (
            lambda _, content: content["hidden.0.bias"].__setitem__(0, np.nan),
            "not finite",
        ),
    ],
    ids=[
        "version", "format", "no layout", "no window", "wide", "absent", "double", "short", "nan",
    ],
)  # fmt: skip
def test_wrong_content_is_named(tmp_path, change, message):
    """What is wrong with a policy file is said, whatever it is."""
    path = tmp_path / "x.npz"
    write_policy(path, policy())
    rewrite(path, change)
    with pytest.raises(PolicyFileError, match=message):
        read_policy(path)
