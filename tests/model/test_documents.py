"""TOML documents: all mistakes at once, with paths and suggestions."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.model.documents import Document, read_toml, validate


class Colour(enum.Enum):
    """Something to choose from."""

    RED = "red"
    BLUE = "blue"


class Steady(Document):
    """Arrivals at a constant rate."""

    kind: Literal["steady"]
    rate: float = Field(gt=0)


class Bursts(Document):
    """Arrivals in bursts."""

    kind: Literal["bursts"]
    height: float
    length_s: float = 60.0


class Part(Document):
    """A nested table."""

    count: int = Field(1, ge=1)
    colour: Colour = Colour.RED


class Run(Document):
    """A document with everything a document may have."""

    name: str
    parts: tuple[Part, ...] = ()
    named: dict[str, Part] = Field(default_factory=dict)
    arrivals: Annotated[Steady | Bursts, Field(discriminator="kind")] | None = None
    output: Path | None = None
    mode: Literal["fast", "exact"] = "fast"
    size: int | str = 1


def mistakes(data: dict[str, Any]) -> tuple[str, ...]:
    """Return the mistakes for which a run is refused."""
    with pytest.raises(InvalidConfigError) as caught:
        validate(Run, data, "run.toml")
    assert caught.value.where == "run.toml"
    return caught.value.mistakes


def test_a_correct_document_becomes_its_class():
    """Arrays become tuples, text becomes paths and enumerations, integers become floats."""
    data = {
        "name": "mine",
        "parts": [{"count": 2}, {"colour": "blue"}],
        "arrivals": {"kind": "steady", "rate": 3},
        "output": "results",
    }
    run = validate(Run, data, "run.toml")
    assert run.parts == (Part(count=2), Part(colour=Colour.BLUE))
    assert run.arrivals == Steady(kind="steady", rate=3.0)
    assert run.output == Path("results")


def test_all_mistakes_come_at_once_with_their_paths():
    """One message holds every mistake of every level."""
    found = mistakes(
        {
            "parts": [{"count": 0}, {"count": "two", "colour": "green"}],
            "named": {"x": {"count": True}},
            "arrivals": {"kind": "bursts", "hight": 3.0},
            "modee": "fast",
        }
    )
    starts = sorted(mistake.split(":")[0] for mistake in found)
    assert starts == [
        "arrivals.height",
        "arrivals.hight",
        "modee",
        "name",
        "named.x.count",
        "parts[0].count",
        "parts[1].colour",
        "parts[1].count",
    ]


def test_required_keys_are_asked_for():
    """A key without a default must be there."""
    assert mistakes({}) == ("name: is required",)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"name": 3}, "name: must be a valid string, got 3"),
        ({"mode": "fats"}, "must be 'fast' or 'exact', got 'fats'. Did you mean 'fast'?"),
        ({"parts": [{"count": 0}]}, "must be greater than or equal to 1, got 0"),
        ({"parts": [{"count": 8.5}]}, "parts[0].count: must be a valid integer, got 8.5"),
        ({"parts": [{"count": "8"}]}, "parts[0].count: must be a valid integer, got '8'"),
        ({"parts": [{"count": True}]}, "must be a valid integer, got true"),
        ({"parts": {}}, "parts: must be a valid array, got a table"),
        ({"name": ["x"]}, "name: must be a valid string, got an array"),
        ({"parts": [{"cuont": 1}]}, "unknown key. Did you mean 'count'? Allowed: colour, count"),
        ({"named": {"p": {"cuont": 1}}}, "named.p.cuont: unknown key. Did you mean 'count'?"),
        ({"parts": [{"colour": "rde"}]}, "Did you mean 'red'?"),
        ({"arrivals": {"kind": "stedy"}}, "unknown 'kind' 'stedy'. Did you mean 'steady'?"),
        ({"arrivals": {"rate": 1.0}}, "arrivals: "),
        ({"arrivals": {"kind": "steady", "rate": float("nan")}}, "must be a finite number"),
        ({"arrivals": {"kind": "steady", "rate": float("inf")}}, "must be a finite number"),
    ],
)  # fmt: skip
def test_mistakes_say_what_is_allowed(data: dict[str, Any], expected: str):
    """Each mistake names its place, what was found, and what would be right."""
    found = mistakes({"name": "x"} | data)
    assert len(found) == 1
    assert expected in found[0]


def test_suggestions_follow_the_chosen_alternative():
    """An unknown key is compared with the keys of the alternative that was chosen."""
    (found,) = mistakes({"name": "x", "arrivals": {"kind": "steady", "rate": 1.0, "length_s": 2.0}})
    assert found == "arrivals.length_s: unknown key. Allowed: kind, rate"


def test_alternatives_without_a_tag_do_not_show_in_paths():
    """A value that fits no alternative is reported where it stands."""
    assert {found.split(":")[0] for found in mistakes({"name": "x", "size": 1.5})} == {"size"}


KEYS = st.text(max_size=4) | st.sampled_from([*Run.model_fields, *Part.model_fields, "kind"])
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(KEYS, VALUES)


@given(TABLES)
def test_any_data_is_accepted_or_refused_as_a_whole(data: dict[str, Any]):
    """No table makes validation crash: it is a document or a list of mistakes."""
    try:
        validate(Run, data, "run.toml")
    except InvalidConfigError as error:
        assert error.mistakes  # noqa: PT017 both outcomes are right


@given(st.binary(max_size=60))
def test_any_bytes_are_toml_or_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    """No file content makes reading crash."""
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(content)
    try:
        read_toml(file)
    except InvalidConfigError as error:
        assert len(error.mistakes) == 1  # noqa: PT017 both outcomes are right


def refused(path: Path) -> str:
    """Return the one mistake for which a file is refused."""
    with pytest.raises(InvalidConfigError) as caught:
        read_toml(path)
    assert str(path) in str(caught.value)
    (mistake,) = caught.value.mistakes
    return mistake


def test_syntax_errors_show_the_line(tmp_path: Path):
    """Malformed TOML is one mistake with the number and the text of its line."""
    file = tmp_path / "bad.toml"
    file.write_text("x = 1\r\n  count 8\r\n", newline="")
    assert "at line 2" in refused(file)
    assert "'count 8'" in refused(file)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'a = 1\nname = "\xff"\n', "is not UTF-8 text: byte 0xff in line 2"),
        (b"a = " + b"[" * 100_000, "is nested too deeply"),
        (b"a = " + b"9" * 5000, "is not valid TOML"),
        (b'a = """never ends', "is not valid TOML"),
        (b"a = 1\na = 2\n", "is not valid TOML"),
    ],
)
def test_what_is_not_toml_is_refused(tmp_path: Path, content: bytes, expected: str):
    """Binary, endless and contradictory files are each one clear mistake."""
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    assert expected in refused(file)


def test_files_that_cannot_be_opened_are_refused(tmp_path: Path):
    """Missing files, directories and impossible names are clear mistakes."""
    assert "no such file" in refused(tmp_path / "missing.toml")
    assert "is a directory" in refused(tmp_path)
    assert "cannot be read" in refused(Path("nul\0.toml"))
    assert "cannot be read" in refused(Path("x" * 5000))


def test_deeply_nested_values_are_refused(tmp_path: Path):
    """Nesting that TOML allows but no document needs is a mistake, not a crash."""
    for depth in (230, 300):
        file = tmp_path / f"{depth}.toml"
        file.write_text("name = " + "[" * depth + "]" * depth)
        with pytest.raises(YardmasterError, match="nested too deeply"):
            validate(Run, read_toml(file), "run.toml")


def test_marks_and_line_ends_of_other_systems_are_read(tmp_path: Path):
    """A byte-order mark and carriage returns are no mistakes."""
    file = tmp_path / "windows.toml"
    file.write_bytes(b'\xef\xbb\xbfname = "x"\r\nsize = 3\r\n')
    assert read_toml(str(file)) == {"name": "x", "size": 3}
