"""Following files of JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from yardmaster.dashboard import tails
from yardmaster.dashboard.tails import Tail


@given(st.lists(st.integers(), max_size=30), st.lists(st.integers(0, 400), max_size=12))
def test_every_line_is_read_once_however_it_is_written(
    tmp_path_factory, numbers: list[int], cuts: list[int]
):
    """A file that grows by arbitrary pieces gives each record exactly once and in order."""
    path = tmp_path_factory.mktemp("tail") / "lines.jsonl"
    content = "".join(json.dumps({"n": number}) + "\n" for number in numbers).encode()
    tail, found = Tail(path), []
    assert tail.read() == []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(content)], strict=True):
        with path.open("ab") as file:
            file.write(content[begin:end])
        found += tail.read_all()
        assert not tail.restarted
    assert [record["n"] for record in found] == numbers


def test_a_replaced_file_is_read_anew(tmp_path: Path):
    """A resumed run replaces its journal by a shorter one: that is told, and all read again."""
    path = tmp_path / "lines.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n')
    tail = Tail(path)
    assert len(tail.read()) == 2
    (tmp_path / "other").write_text('{"n": 1}\n')
    (tmp_path / "other").replace(path)
    assert tail.read_all() == [{"n": 1}]
    assert tail.restarted
    assert tail.read() == []
    assert not tail.restarted


def test_damaged_lines_are_passed_over(tmp_path: Path, monkeypatch):
    """Neither text that is no JSON, nor a line without end, keeps the rest from being read."""
    monkeypatch.setattr(tails, "MOST_BYTES", 64)
    path = tmp_path / "lines.jsonl"
    path.write_text('junk\n[1]\n{"n": 1}\n' + "x" * 200 + '\n{"n": 2}\n')
    tail = Tail(path)
    found = [record for _ in range(10) for record in tail.read()]
    assert found == [{"n": 1}, {"n": 2}]
