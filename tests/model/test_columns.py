"""Label columns and the description of the canonical columns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.model.columns import COLUMN_NAMES, COLUMNS, LABEL_COLUMNS, Labels

NAMES = st.lists(st.one_of(st.none(), st.text(min_size=1, max_size=4)), max_size=30)


@given(NAMES)
def test_names_survive_encoding(names: list[str | None]):
    """Encoding and decoding a column of names gives the names back."""
    labels = Labels.of(names)
    assert labels.values() == names
    assert len(labels) == len(names)


@given(NAMES)
def test_codes_count_names_as_they_first_appear(names: list[str | None]):
    """The short list holds each name once, in order of first appearance."""
    assert Labels.of(names).names == tuple(dict.fromkeys(n for n in names if n is not None))


@pytest.mark.parametrize("nothing", [None, "", math.nan, np.float64("nan")])
def test_nothing_is_missing(nothing: object):
    """None, the empty name and NaN all mean that there is no name."""
    assert Labels.of(["a", nothing]).values() == ["a", None]


def test_numbers_are_names_and_zero_is_one_of_them():
    """A numeric user id is a name; 0 is not mistaken for missing."""
    assert Labels.of([0, 7, 0]).values() == ["0", "7", "0"]
    assert Labels.of(np.array([0, 7])).values() == ["0", "7"]


@given(NAMES, st.data())
def test_taking_rows_takes_their_names(names: list[str | None], data: st.DataObject):
    """Rows can be picked by index in any order, or by mask."""
    labels = Labels.of(names)
    rows = data.draw(st.lists(st.sampled_from(range(len(names))))) if names else []
    assert labels.take(np.array(rows, dtype=np.int64)).values() == [names[row] for row in rows]
    mask = np.array([row in rows for row in range(len(names))], dtype=bool)
    assert labels.take(mask).values() == [n for n, kept in zip(names, mask, strict=True) if kept]


@given(NAMES, st.data())
def test_compacting_is_encoding_anew(names: list[str | None], data: st.DataObject):
    """A compacted column equals the column encoded from scratch, whatever it was cut from."""
    labels = Labels.of(names)
    rows = data.draw(st.lists(st.sampled_from(range(len(names))))) if names else []
    cut = labels.take(np.array(rows, dtype=np.int64))
    fresh = Labels.of(cut.values())
    assert cut.compact().names == fresh.names
    assert cut.compact().codes.tolist() == fresh.codes.tolist()


def test_missing_column():
    """A column in which every value is missing has the asked length and no names."""
    assert Labels.missing(3).values() == [None, None, None]


def test_columns_are_described_once_each():
    """Every canonical column has one description; label columns are among them."""
    assert len(set(COLUMN_NAMES)) == len(COLUMNS)
    assert set(LABEL_COLUMNS) <= set(COLUMN_NAMES)
    assert all(column.meaning and column.missing for column in COLUMNS)
