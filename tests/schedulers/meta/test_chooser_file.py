"""Choosers survive a trip to disk, and what is no chooser is refused with the place named."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from yardmaster.engine.choosing.sight import ChoiceSight
from yardmaster.errors import YardmasterError
from yardmaster.schedulers.learned.weights_file import PolicyFileError
from yardmaster.schedulers.meta.chooser_file import packed, read_chooser, write_chooser
from yardmaster.schedulers.meta.choosers import load_chooser
from yardmaster.testing.choosing import random_chooser

SIGHT = ChoiceSight(menu=("fifo+skip", "sjf+easy", "qssf"), past=2)


def rewrite(path, change) -> None:
    """Change the header or the arrays of a file."""
    with np.load(path) as stored:
        content = {name: stored[name] for name in stored.files}
    header = json.loads(content["header"].tobytes())
    change(header, content)
    content["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **content)


@pytest.fixture
def path(tmp_path):
    """Return where a sound chooser stands."""
    where = tmp_path / "chooser.npz"
    write_chooser(where, random_chooser(SIGHT))
    return where


def test_a_chooser_comes_back_as_it_was(path):
    """Everything is read as it was written, to the bit, and nothing else is left in the folder."""
    found, written = read_chooser(path), random_chooser(SIGHT)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert (found.sight, found.about) == (written.sight, written.about)
    assert list(found.weights) == list(written.weights)
    for name, array in written.weights.items():
        assert np.array_equal(found.weights[name], array)
    ours, theirs = packed(found), packed(written)
    assert np.array_equal(ours.net, theirs.net)
    assert np.array_equal(ours.weights, theirs.weights)


def another(**changes):
    return lambda header, _: header.update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (another(version=2), "version 2; this program reads version 1"),
        (another(format="yardmaster policy"), "is no chooser file"),
        (lambda header, _: header.pop("sight"), "damaged chooser file: 'sight'"),
        (lambda header, _: header["sight"].update(schema=9), "version 9 of the observation"),
        (lambda header, _: header["sight"].update(agess=1), "Did you mean 'ages'"),
        (lambda header, _: header["sight"].update(past="two"), "damaged chooser file"),
        (lambda header, _: header.pop("weights"), "lacks 'weights'"),
        (lambda _, content: content.pop("head.0.bias"), r"lacks head\.0\.bias"),
        (lambda _, c: c.update({"head.0.bias": np.zeros(2)}), r"head\.0\.bias is float64 \[2\]"),
        (
            lambda _, c: c.update({"head.0.bias": np.full(3, np.nan, np.float32)}),
            r"head\.0\.bias holds numbers that are not finite",
        ),
    ],
    ids=[
        "version",
        "format",
        "sight",
        "schema",
        "name",
        "kind",
        "weights",
        "array",
        "shape",
        "nan",
    ],
)
def test_damaged_files_are_refused_with_the_place(path, change, message):
    """The message names the file and what is wrong in it."""
    rewrite(path, change)
    with pytest.raises(PolicyFileError, match=message) as refused:
        read_chooser(path)
    assert str(path) in str(refused.value)


def test_what_is_no_archive_is_refused(path):
    """A cut file, a text and nothing at all are refused."""
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(PolicyFileError, match="damaged"):
        read_chooser(path)
    path.write_text("hello")
    with pytest.raises(PolicyFileError, match="no policy file"):
        read_chooser(path)
    path.unlink()
    with pytest.raises(YardmasterError, match=r"chooser\.npz"):
        read_chooser(path)


def resized(file, name, shape):
    weights = {**file.weights, name: np.zeros(shape, dtype=np.float32)}
    return replace(file, weights=weights)


def without(file, name):
    return replace(file, weights={key: one for key, one in file.weights.items() if key != name})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: replace(file, sight=replace(SIGHT, menu=SIGHT.menu[:2])), "inputs are there"),
        (lambda file: replace(file, sight=replace(SIGHT, past=3)), r"\(24, 8\), and 36 inputs"),
        (lambda file: resized(file, "hidden.0.weight", (3, 8)), r"\(3, 8\)"),
        (lambda file: resized(file, "head.0.weight", (8,)), r"\(8,\)"),
        (lambda file: resized(file, "head.0.bias", (4,)), r"\(8, 3\)"),
        (lambda file: without(file, "hidden.0.bias"), r"lacks hidden\.0\.bias"),
        (lambda file: without(file, "head.0.weight"), "last layer does not fit the menu"),
        (lambda file: replace(file, weights={}), "last layer does not fit the menu"),
    ],
    ids=["menu", "past", "inputs", "axes", "bias", "no-bias", "no-head", "nothing"],
)
def test_networks_that_do_not_fit_are_refused(tmp_path, change, message):
    """Compiled code trusts the layers, so those that do not fit each other or the view stay out."""
    path = tmp_path / "chooser.npz"
    write_chooser(path, change(random_chooser(SIGHT)))
    with pytest.raises(YardmasterError, match=message) as refused:
        load_chooser(str(path))
    assert str(path) in str(refused.value)
