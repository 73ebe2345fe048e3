"""Components of pages, asked in a real browser: building elements, axes, colours, the window."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def beside(browser: Any, dashboard: Any) -> Iterator[Any]:
    """Open a page from which the components can be imported."""
    page = browser.new_page()
    page.goto(f"{dashboard.url}web/base.css")
    yield page
    page.close()


def asked(page: Any, module: str, body: str) -> Any:
    return page.evaluate(f"async () => {{ const the = await import('/web/{module}'); {body} }}")


@pytest.mark.parametrize(
    "attributes",
    [
        '{ href: "javascript:alert(1)" }', '{ href: "JaVaScRiPt:alert(1)" }',
        '{ href: " javascript:alert(1)" }', '{ href: "//evil.example/x" }',
        '{ href: "https://evil.example" }', '{ src: "data:text/html,<script>" }',
        '{ onclick: "alert(1)" }', '{ ONCLICK: "alert(1)" }', '{ style: "x" }', '{ srcdoc: "x" }',
    ],
)  # fmt: skip
def test_elements_take_no_code_from_text(beside, attributes):
    """An attribute that could run code or lead elsewhere is refused, not escaped."""
    text = (
        f"try {{ the.h('a', {attributes}); return 'made'; }} catch (error) {{ return error.name; }}"
    )
    assert asked(beside, "dom.js", text) == "TypeError"


def test_children_are_text(beside):
    """Strings become text, nothing becomes nothing, and functions become listeners."""
    body = """
      let clicked = 0;
      const made = the.h("button", { onclick: () => { clicked += 1; }, disabled: false },
        "<b>bold</b>", 0, null, false, undefined);
      made.click();
      return [made.outerHTML, clicked];
    """
    assert asked(beside, "dom.js", body) == ["<button>&lt;b&gt;bold&lt;/b&gt;0</button>", 1]


def test_ticks_are_round_and_inside(beside):
    """Whatever the span, there are some ticks, evenly spaced, and none outside of it."""
    body = """
      const found = [];
      for (const span of [0.003, 1, 59, 3600, 86400, 1e6, 4e7, 9e8]) {
        for (const low of [0, 17.3, 1e6]) {
          found.push([low, low + span, the.timeTicks(low, low + span, 8)]);
        }
      }
      return found;
    """
    for low, high, ticks in asked(beside, "scales.js", body):
        assert 1 <= len(ticks) <= 18
        assert low - 1e-6 <= ticks[0]
        assert ticks[-1] <= high + 1e-6
        steps = [b - a for a, b in itertools.pairwise(ticks)]
        assert not steps or max(steps) == pytest.approx(min(steps), rel=1e-3)


def test_numbers_keep_three_figures(beside):
    """Small ones too, and none of them reads like nothing."""
    values = [0.000123456, -0.0004, 0.5, 0.1234, 1.234, 99.96, 1234.5, 0, -0.25]
    said = asked(beside, "words.js", f"return {values}.map(the.figure);")
    assert said == [
        "0.000123", "-0.0004", "0.5", "0.123", "1.23", "100.0", "1\u202f235", "0", "-0.25",
    ]  # fmt: skip


def test_ticks_are_told_apart(beside):
    """Labels have the decimals of the step, however close the ticks are."""
    ticks = "[[0, 0.25, 0.5], [0.001, 0.002, 0.003], [-0.1, -1e-18, 0.1], [1000, 2000]]"
    assert asked(beside, "curves.js", f"return {ticks}.map(the.tickWords);") == [
        ["0.00", "0.25", "0.50"], ["0.001", "0.002", "0.003"], ["-0.1", "0.0", "0.1"],
        ["1\u202f000", "2\u202f000"],
    ]  # fmt: skip


def test_an_axis_has_at_least_three_ticks(beside):
    """Also one that begins and ends beside round values."""
    body = """
      const found = [];
      for (let low = -3; low < 3; low += 0.137) {
        for (const span of [0.9, 1.1, 3.7, 19, 42]) found.push(the.ticks(low, low + span, 3));
      }
      return found;
    """
    for ticks in asked(beside, "scales.js", body):
        assert 3 <= len(ticks) <= 10


def test_a_strip_says_its_true_maximum(beside):
    """A peak far shorter than a pixel counts if it is in view, and not if it is not."""
    strip = "{ edges: [0, 10, 10.001, 20], values: [1, 50, 2] }"
    spans = [(0, 20), (0, 5), (10.5, 20), (15, 30)]
    for (begin, end), most in zip(spans, [50, 1, 2, 2], strict=True):
        text = f"return the.mostWithin({strip}, {begin}, {end});"
        assert asked(beside, "strips.js", text) == most


def test_the_window_stays_inside(beside):
    """However one zooms and pans, the window lies within the whole and keeps its place."""
    body = """
      const one = new the.TimeWindow(100, 1100);
      one.zoom(0.1, 200);
      const zoomed = [one.from, one.to];
      one.pan(-50);
      const left = [one.from, one.to];
      one.zoom(1e9);
      const whole = [one.from, one.to];
      one.zoom(1e-30, 500);
      const least = one.span > 0;
      one.reveal(300, 301);
      return [zoomed, left, whole, least, one.from <= 300 && one.to >= 301];
    """
    zoomed, left, whole, least, revealed = asked(beside, "time_window.js", body)
    assert zoomed == pytest.approx([190, 290])
    assert left == pytest.approx([100, 200])
    assert whole == [100, 1100]
    assert least
    assert revealed


def test_categories_are_told_apart_without_colour_vision(beside):
    """Neighbouring categories differ in brightness or in blue–yellow, which nearly all can see."""
    colours = asked(beside, "palette.js", "return the.CATEGORIES.map(the.rgb);")
    assert len(colours) == 8
    for place, (r, g, b) in enumerate(colours):
        for r2, g2, b2 in colours[:place]:
            # As seen without red or without green cones: luminance, and blue against yellow.
            light = abs((0.3 * r + 0.6 * g + 0.1 * b) - (0.3 * r2 + 0.6 * g2 + 0.1 * b2))
            hue = abs((b - (r + g) / 2) - (b2 - (r2 + g2) / 2))
            assert light + hue > 25, (place, colours)


def test_the_ramp_grows_lighter(beside):
    """From little to much, brightness only ever grows: it can be read in grey."""
    colours = asked(
        beside, "palette.js", "return [...Array(50).keys()].map((n) => the.ramp(n / 49));"
    )
    light = [0.3 * r + 0.6 * g + 0.1 * b for r, g, b in colours]
    assert light == sorted(light)
    assert light[-1] - light[0] > 120


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.001, "< 0.01 s"), (59, "59 s"), (90, "1.50 min"), (7200, "2 h"),
     (1e6, "11.6 d"), ("NaN", "–"), ("null", "–")],
)  # fmt: skip
def test_durations_in_words(beside, seconds, words):
    """Spans of time in the largest unit that fits, and a dash for none."""
    assert asked(beside, "words.js", f"return the.duration({seconds});") == words
