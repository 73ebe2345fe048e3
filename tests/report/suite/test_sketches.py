"""Figures for pages and for paper."""

from __future__ import annotations

from matplotlib.figure import Figure as Canvas

from yardmaster.report.suite.sketches import WIDE_IN, Sketch


def line(canvas: Canvas) -> None:
    axes = canvas.add_subplot()
    axes.plot([0, 1], [0, 1])
    axes.set_xlabel("time")


def test_pictures_are_dark_on_white_and_the_page_is_not():
    """Paper has dark ink; the page's figure is transparent in the page's grey."""
    sketch = Sketch("x", "A line", "It rises.", "A rising line.", 2.0, line)
    files = sketch.pictures()
    assert set(files) == {"png", "pdf"}
    assert files == sketch.pictures()
    svg = sketch.figure().svg
    assert "#757575" in svg
    assert "#2a2e33" not in svg
    assert "time" in svg


def test_several_panels_take_the_whole_width():
    """Only figures wider than usual are wide."""
    assert Sketch("x", "", "", "", 2.0, line, WIDE_IN).is_wide
    assert not Sketch("x", "", "", "", 2.0, line).is_wide
