"""Settings come from tables and go back to them; mistakes are named with their place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidConfigError
from yardmaster.experiments.training.tables import (
    checked,
    filled,
    read_tables,
    table_of,
    to_toml,
)


@dataclass(frozen=True)
class Inner:
    """Settings inside others."""

    width: int = 3


@dataclass(frozen=True)
class Outer:
    """A setting of every kind."""

    rate: float = 0.5
    name: str = "a"
    is_on: bool = True
    limit: float | None = None
    layers: tuple[int, ...] = (1, 2)
    pair: tuple[float, float] = (0.0, 1.0)
    where: Literal["cpu", "cuda"] = "cpu"
    weights: str | Mapping[str, float] = "none at all"
    inner: Inner = Inner()

    def __post_init__(self):
        if self.rate < 0:
            raise InvalidConfigError("Outer", [f"rate = {self.rate}: must not be negative"])


def mistakes_of(table: dict) -> list[str]:
    mistakes: list[str] = []
    filled(Outer(), table, "outer", mistakes)
    return mistakes


def test_values_take_the_place_of_defaults():
    """Whole numbers serve as reals, arrays as tuples, "none" as none, tables as settings."""
    mistakes: list[str] = []
    table = {
        "rate": 2, "limit": 3, "layers": [4], "pair": [1, 2], "where": "cuda",
        "weights": {"x": 1}, "inner": {"width": 5},
    }  # fmt: skip
    found = filled(Outer(limit=1.0), table, "outer", mistakes)
    assert mistakes == []
    assert found == Outer(
        rate=2.0, limit=3.0, layers=(4,), pair=(1.0, 2.0), where="cuda", weights={"x": 1.0},
        inner=Inner(5),
    )  # fmt: skip
    assert isinstance(found.rate, float)
    assert filled(found, {"limit": "none"}, "outer", mistakes).limit is None


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"ratte": 1.0}, "outer.ratte: unknown key. Did you mean 'rate'? Allowed: inner, is_on"),
        ({"rate": "x"}, "outer.rate: must be a number, got 'x'"),
        ({"rate": True}, "outer.rate: must be a number, got true"),
        ({"rate": float("nan")}, "outer.rate: must be a number, got nan"),
        ({"rate": -1.0}, "outer.rate = -1.0: must not be negative"),
        ({"name": 3}, "outer.name: must be text, got 3"),
        ({"is_on": 1}, "outer.is_on: must be true or false, got 1"),
        ({"limit": "x"}, "outer.limit: must be a number or \"none\", got 'x'"),
        ({"layers": "12"}, "outer.layers: must be an array, got '12'"),
        ({"layers": [1.5]}, "outer.layers: must be a whole number, got 1.5"),
        ({"pair": [1]}, "outer.pair: must be an array of 2, got 1"),
        (
            {"where": "cuda0"},
            "outer.where: must be 'cpu' or 'cuda', got 'cuda0'. Did you mean 'cuda'?",
        ),
        ({"weights": 3}, "outer.weights: must be text or a table, got 3"),
        ({"inner": {"witdh": 3}}, "outer.inner.witdh: unknown key. Did you mean 'width'?"),
        ({"inner": 3}, "outer.inner: must be Inner, got 3"),
        ({"rate": {"a": 1}}, "outer.rate: must be a number, got a table"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_mistakes_are_named(table: dict, complaint: str):
    """Each mistake is told with its path and what would be right."""
    (found,) = mistakes_of(table)
    assert found.startswith(complaint)


def test_all_mistakes_are_told_at_once():
    """One mistake does not hide another, in whatever table."""
    assert len(mistakes_of({"a": 1, "rate": "x", "inner": {"b": 2, "width": "c"}})) == 4


def test_checked_leaves_out_what_is_wrong():
    """Right values are returned even where others are wrong."""
    mistakes: list[str] = []
    assert checked({"a": 1, "b": "x"}, {"a": float, "b": int}, "t", mistakes) == {"a": 1.0}
    assert mistakes == ["t.b: must be a whole number, got 'x'"]


plain = st.one_of(
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",))),
)
keys = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
values = st.one_of(plain, st.lists(plain, max_size=3))
tables = st.recursive(
    st.dictionaries(keys, values, max_size=4),
    lambda inner: st.dictionaries(keys, st.one_of(values, inner), max_size=4),
    max_leaves=12,
)


@given(tables)
def test_toml_comes_back_as_it_was(table: dict):
    """What is written as TOML reads back the same, whatever the names and texts."""
    assert tomllib.loads(to_toml(table)) == table


@given(
    st.builds(
        Outer,
        rate=st.floats(0, 1e300),
        name=st.text(st.characters(exclude_categories=("Cs",))),
        is_on=st.booleans(),
        limit=st.none() | st.floats(allow_nan=False),
        layers=st.lists(st.integers(0, 99)).map(tuple),
        inner=st.builds(Inner, st.integers(-9, 9)),
    )
)
def test_settings_survive_a_file(settings: Outer):
    """Settings written as TOML and read over the defaults are the same settings."""
    mistakes: list[str] = []
    table = tomllib.loads(to_toml(table_of(settings)))
    assert filled(Outer(), table, "outer", mistakes) == settings
    assert mistakes == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "there is no such file"),
        (b"a = ", "is not valid TOML"),
        (b"\xff\xfe", "is not valid TOML"),
        ("folder", "is a directory"),
    ],
    ids=["missing", "syntax", "bytes", "folder"],
)
def test_files_that_cannot_be_read(content: bytes | str | None, complaint: str, tmp_path: Path):
    """A bad file is refused by name."""
    path = tmp_path / "x.toml"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidConfigError, match=complaint) as caught:
        read_tables(path)
    assert str(path) in str(caught.value)
