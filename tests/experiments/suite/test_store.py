"""The store keeps what it was given, whole batches at a time."""

from __future__ import annotations

import math
import sqlite3

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.store import Kept, opened


def kept(key: str, *numbers: float, seconds: float = 0.5) -> Kept:
    return Kept(key, np.array(numbers), np.linspace(0, 9, 5, dtype=np.float32), seconds)


def test_numbers_come_back_as_they_were(tmp_path):
    """Every bit is kept, NaN and infinity too, in any order of keys and names."""
    values = (0.1 + 0.2, math.nan, -math.inf, 5e-324)
    with opened(tmp_path / "runs.sqlite") as store:
        store.add(("a", "b", "c", "d"), [kept("x", *values), kept("y", 1, 2, 3, 4)])
    with opened(tmp_path / "runs.sqlite", read_only=True) as store:
        assert store.keys() == {"x", "y"}
        found = store.numbers(["y", "x"], ["d", "b", "a", "c"])
        quantiles = store.jct_quantiles_s(["x"])
    np.testing.assert_array_equal(found, [[4, 2, 1, 3], [5e-324, math.nan, 0.1 + 0.2, -math.inf]])
    np.testing.assert_array_equal(quantiles, [np.linspace(0, 9, 5, dtype=np.float32)])
    assert quantiles.dtype == np.float32


def test_runs_of_other_names_live_side_by_side(tmp_path):
    """After the names of the numbers changed, older runs are still read by theirs."""
    with opened(tmp_path / "runs.sqlite") as store:
        store.add(("a", "b"), [kept("old", 1, 2)])
        store.add(("b", "c", "a"), [kept("new", 20, 30, 10)])
        np.testing.assert_array_equal(store.numbers(["old", "new"], ["a", "b"]), [[1, 2], [10, 20]])
        with pytest.raises(YardmasterError, match="runs without c"):
            store.numbers(["old"], ["c"])


def test_a_batch_is_kept_whole_or_not_at_all(tmp_path):
    """If one run of a batch cannot be written, none of it is there."""

    def runs():
        yield kept("fine", 1)
        raise ZeroDivisionError

    with opened(tmp_path / "runs.sqlite") as store:
        with pytest.raises(ZeroDivisionError):
            store.add(("a",), runs())
        assert not store.keys()


def test_what_was_made_since_did_not_fail(tmp_path):
    """Failures are kept until the run is made."""
    with opened(tmp_path / "runs.sqlite") as store:
        store.add_failures([("x", "no luck"), ("y", "none either")])
        store.add(("a",), [kept("x", 1)])
        assert store.failures() == {"y": "none either"}


def test_seconds_that_nobody_knows(tmp_path):
    """A run in a new process has no cost of its own."""
    with opened(tmp_path / "runs.sqlite") as store:
        store.add(("a",), [kept("cold", 1, seconds=math.nan), kept("warm", 1, seconds=0.25)])
        np.testing.assert_array_equal(store.seconds(["cold", "warm"]), [math.nan, 0.25])


def test_an_unknown_run_is_an_error(tmp_path):
    """Asking for what is not there names it."""
    with (
        opened(tmp_path / "runs.sqlite") as store,
        pytest.raises(YardmasterError, match="no run q"),
    ):
        store.numbers(["q"], [])


def test_a_missing_store_is_not_made_by_reading(tmp_path):
    """Readers get an error, not an empty file."""
    with (
        pytest.raises(YardmasterError, match="run the experiment first"),
        opened(tmp_path / "runs.sqlite", read_only=True),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_damaged_store_is_refused(tmp_path):
    """A file that is no store, or one of another version, is named."""
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"certainly not a database" * 100)
    with pytest.raises(YardmasterError, match="cannot be used"), opened(path):
        pass
    path.unlink()
    with opened(path):
        pass
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE about SET value = '99'")
    connection.close()
    with pytest.raises(YardmasterError, match="version 99"), opened(path):
        pass
