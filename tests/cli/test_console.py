"""What commands print, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import select
import sys
from collections.abc import Iterator
from typing import IO

import pytest

from yardmaster.cli import console


@pytest.fixture
def terminal() -> Iterator[tuple[IO[str], int]]:
    """A real terminal: the end that programs write to, and the one to read from."""
    reading, writing = pty.openpty()
    with os.fdopen(writing, "w") as screen:
        yield screen, reading
    os.close(reading)


def everything(reading: int) -> str:
    """All that was written to the terminal; one read may give only a part of it."""
    parts = []
    while select.select([reading], [], [], 0.5)[0]:
        parts.append(os.read(reading, 100_000))
    return b"".join(parts).decode()


def test_a_terminal_shows_a_bar_with_rate_and_time_left(
    terminal: tuple[IO[str], int], monkeypatch: pytest.MonkeyPatch
):
    """On a terminal long work has a bar: what is done, of how much, how fast, what it is at."""
    screen, reading = terminal
    monkeypatch.setattr(sys, "stderr", screen)
    with console.progress(quiet=False) as report:
        assert report is not None
        report("sjf+easy", 3, 10)
        report("saf+easy", 4, 10)
    shown = everything(reading)
    assert "4/10" in shown
    assert "/s" in shown
    assert "saf+easy" in shown


def test_logs_get_plain_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Where nobody watches, a line now and then says how far it is and how long it will take."""
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    with console.progress(quiet=False) as report:
        assert report is not None
        report("fifo", 0, 10)
        report("sjf+easy", 5, 10)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("5/10 simulations, ")
    assert line.endswith(" s left: sjf+easy")


def test_compiling_does_not_spoil_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The step in which something was compiled says nothing about the pace."""
    clock = iter([0.0, 0.0, 0.0, 100.0, 100.0, 102.0, 102.0, 104.0, 104.0])
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    with console.progress(quiet=False) as report:
        assert report is not None
        report("fifo", 0, 5)
        console.announce("Compiling …")
        report("sjf", 1, 5)
        report("saf", 2, 5)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["Compiling …", "1/5 simulations: sjf", "2/5 simulations, 0.5/s, 6 s left: saf"]


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]):
    """Asked to be quiet, nothing is reported."""
    with console.progress(quiet=True) as report:
        assert report is None
    assert capsys.readouterr().err == ""


def test_colours_only_where_they_are_wanted(
    terminal: tuple[IO[str], int], monkeypatch: pytest.MonkeyPatch
):
    """A terminal gets colours unless NO_COLOR is set; files get none."""
    assert not console.colours()
    monkeypatch.setattr(sys, "stdout", terminal[0])
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert console.colours()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not console.colours()
