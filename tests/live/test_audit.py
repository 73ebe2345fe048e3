"""The audit log: whole lines, whatever happens."""

from __future__ import annotations

import json

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.audit import AuditLog, JsonLines, last_number, read_lines
from yardmaster.live.clock import LiveClock

CLOCK = LiveClock.since(0.0)


def test_lines_are_numbered_on_through_restarts(tmp_path):
    """A log that is opened again counts on behind its last line."""
    path = tmp_path / "audit.jsonl"
    for turn in range(3):
        log = AuditLog(path, CLOCK)
        log.write("begin", restart=turn)
        log.write("end", note="x" * 200_000)  # longer than what is read of the end at first
        log.close()
    assert [line["n"] for line in read_lines(path)] == [1, 2, 3, 4, 5, 6]
    assert last_number(path) == 6


def test_a_line_cut_off_anywhere_costs_only_itself(tmp_path):
    """Cut after any byte, the log keeps every whole line and goes on with the next number."""
    whole = tmp_path / "whole.jsonl"
    log = AuditLog(whole, CLOCK)
    for number in range(4):
        log.write("observe", tick=number, text="ä\n")
    log.close()
    data = whole.read_bytes()
    for cut in range(len(data)):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:cut])
        kept = data[:cut].count(b"\n")
        assert len(list(read_lines(path))) == kept
        log = AuditLog(path, CLOCK)
        assert log.torn_bytes == cut - (data[:cut].rfind(b"\n") + 1)
        log.write("begin")
        log.close()
        assert [line["n"] for line in read_lines(path)] == list(range(1, kept + 2))


def test_numbers_that_json_does_not_know_are_refused(tmp_path):
    """NaN never reaches the log: a reader in another language would choke on it."""
    lines = JsonLines(tmp_path / "x.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        lines.write({"x": float("nan")})
    lines.close()


def test_what_is_no_log_is_said_to_be_none(tmp_path):
    """A missing file and a line that is no object are named."""
    with pytest.raises(YardmasterError, match="not a live run"):
        list(read_lines(tmp_path / "audit.jsonl"))
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps([1]) + "\n")
    with pytest.raises(YardmasterError, match="line 1"):
        list(read_lines(path))
