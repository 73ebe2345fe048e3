"""Records in JSON: every one is found with its place, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.reading.bad_rows import BadRows
from yardmaster.workloads.traces.reading.json_records import records
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile

OBJECTS = st.lists(
    st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5)),
    max_size=6,
)


def written(folder: Path, content: str | bytes) -> TraceFile:
    path = folder / "some.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TraceFile(str(path), path)


@given(
    objects=OBJECTS, indent=st.sampled_from([None, 0, 2]), end=st.sampled_from(["", "\n", " \n"])
)
def test_arrays_give_their_objects_and_lines(tmp_path_factory, objects, indent, end):
    """However an array is laid out, its objects come back in order with the lines they begin on."""
    text = json.dumps(objects, indent=indent) + end
    bad = BadRows()
    found = list(records(written(tmp_path_factory.mktemp("json"), text), bad))
    assert [record.content for record in found] == objects
    assert [record.number for record in found] == list(range(1, len(objects) + 1))
    assert bad.count == 0
    lines = text.split("\n")
    for record in found:
        assert "{" in lines[record.line - 1]


@given(objects=OBJECTS.filter(bool), blank=st.sampled_from(["", "\n", "  \n"]))
def test_lines_give_their_objects_and_numbers(tmp_path_factory, objects, blank):
    """One object per line, blank lines between or not: numbers count records, lines count lines."""
    text = "".join(json.dumps(entry) + "\n" + blank for entry in objects)
    found = list(records(written(tmp_path_factory.mktemp("json"), text), BadRows()))
    assert [record.content for record in found] == objects
    step = 2 if blank else 1
    assert [record.line for record in found] == [1 + step * i for i in range(len(objects))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        (b"\xef\xbb\xbf  \n", "empty"),
        ('[{"a": 1},\n {"a": 2', r"record 2 \(from line 2\).*ends in the middle"),
        ('[{"a": 1},\n {"a":\n x}]', r"record 2 \(from line 2, broken on line 3\)"),
        ('[{"a": 1}\n {"a": 2}]', "goes on with .* after record 1"),
        ('[{"a": 1}', "the array ends after record 1"),
        ('[{"a": 1},', r"record 2 \(from line 1\)"),
        ('[{"a": 1}]\n[{"a": 2}]', "something follows the array, which ends on line 1"),
        (b'[{"a": 1},\n{"a": "\xff"}]', "line 2 is not UTF-8"),
        ("[" * 100_000, "record 1 .*recursion"),
        ('[{"a": ' + "9" * 5000 + "}]", "record 1 .*limit"),
    ],
)
def test_damage_to_an_array_is_named(tmp_path, content, message):
    """Cut off, garbled, too deep or not text: the message names the record and the line."""
    with pytest.raises(TraceFormatError, match=message):
        list(records(written(tmp_path, content), BadRows()))


def test_things_that_are_no_objects_are_bad_records(tmp_path):
    """A number among the objects of an array does not hide the others."""
    bad = BadRows()
    found = list(records(written(tmp_path, '[1, {"a": 1},\n"x"]'), bad))
    assert [record.number for record in found] == [2]
    assert [line for line, _ in bad.first] == [1, 2]


def test_bad_lines_harm_only_themselves(tmp_path):
    """Each damaged line is counted and named; the sound ones are read."""
    content = b'\xef\xbb\xbf{"a": 1}\nnonsense\n{"a": "\xff"}\n[1]\n{"a": 2}\n{"a"'
    file, bad = written(tmp_path, content), BadRows()
    assert [record.content for record in records(file, bad)] == [{"a": 1}, {"a": 2}]
    assert [line for line, _ in bad.first] == [2, 3, 4, 6]
    with pytest.raises(TraceFormatError, match="4 records cannot be read") as refused:
        bad.dropped(file.name, ImportOptions(), what="record")
    assert all(f"line {line}: " in str(refused.value) for line in (2, 3, 4, 6))
    skipping = ImportOptions(skip_bad_rows=True)
    assert bad.dropped(file.name, skipping).examples == ("line 2", "line 3", "line 4", "line 6")


def test_complaints_name_twenty_and_count_the_rest(tmp_path):
    """A thousand bad lines make a message that can be read."""
    file, bad = written(tmp_path, "x\n" * 1000), BadRows()
    assert list(records(file, bad)) == []
    with pytest.raises(TraceFormatError, match=r"(?s)1,000 records.*and 980 more") as refused:
        bad.dropped(file.name, ImportOptions(), what="record")
    assert str(refused.value).count("  - line") == 20
