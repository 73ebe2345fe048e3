"""The report of a comparison in a browser: opened from a disk, without any network."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

WORDS = ("compare", "-s", "fifo,sjf+easy,srpt+preemptive", "--workload", "venus-like")


@pytest.fixture(scope="module")
def report(make_run) -> Path:
    """Return the report of three schedulers on two workloads."""
    folder = make_run(*WORDS, "--jobs", "250", "--seeds", "2", "--out", "reported")
    return folder / "report.html"


@pytest.fixture
def opened(browser, report):
    """Return what opens the report where nothing but the file can be reached."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def deny(route: Any) -> None:
        wrong.append(f"asked for {route.request.url}")
        route.abort()

    def make(**options: Any) -> Any:
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        context.route(lambda url: not url.startswith((report.as_uri(), "blob:", "data:")), deny)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: wrong.append(f"script failed: {error}"))
        page.on("console", lambda note: wrong.append(note.text) if note.type == "error" else None)
        page.goto(report.as_uri())
        return page

    yield make
    for context in contexts:
        context.close()
    assert not wrong


def test_the_file_alone_can_be_explored(opened, shoot):
    """Differences, linked schedules, distributions and jobs appear from the file's own data."""
    page = opened()
    page.wait_for_selector("#explore .gantts[aria-busy=false] canvas.gantt-plot")
    assert page.locator("#explore .chart").count() >= 8
    assert page.locator("#explore .gantts canvas.gantt-plot").count() == 3
    assert "paired over 2 workloads" in page.locator("#explore").inner_text()
    script = "all => all.map(one => one.toDataURL())"
    before = page.eval_on_selector_all("canvas.gantt-plot", script)
    page.get_by_role("button", name="Closer").click()
    page.wait_for_timeout(200)
    after = page.eval_on_selector_all("canvas.gantt-plot", script)
    assert all(old != new for old, new in zip(before, after, strict=True))
    page.locator("button.job").first.click()
    page.wait_for_selector(".movers + div .chart")
    shoot(page, "report-explored")


def test_figures_of_the_file_can_be_kept(opened):
    """SVG, PNG and CSV come from the page itself."""
    page = opened()
    chart = page.locator("#explore .chart").first
    for label, begin in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"scheduler,")):
        with page.expect_download() as download:
            chart.get_by_role("button", name=f"as {label}").click()
        assert Path(download.value.path()).read_bytes().startswith(begin)


def test_without_scripts_the_essentials_are_there(opened, shoot):
    """Table and figures show; the part that needs a script does not."""
    page = opened(java_script_enabled=False)
    assert page.locator("table.results tbody tr").count() == 3
    assert page.locator(".figures figure svg").count() >= 4
    assert page.locator(".figures figure svg").first.is_visible()
    assert page.locator("#explore").is_hidden()
    shoot(page, "report-without-scripts")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "dark")])
def test_the_file_fits_phones_and_dark_rooms(opened, shoot, width, scheme):
    """Nothing is wider than the window."""
    page = opened(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.wait_for_selector("#explore .gantts[aria-busy=false] canvas.gantt-plot")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shoot(page, f"report-{width}-{scheme}")


def test_a_table_that_goes_on_sideways_shows_it(opened):
    """On a phone its right edge is shaded until it is scrolled to the end."""
    page = opened(viewport={"width": 390, "height": 800})
    table = page.locator(".card.scroll").first
    table.scroll_into_view_if_needed()

    def edge() -> int:
        """How light the card is at its right edge, in the padding above the words."""
        box = table.bounding_box()
        clip = {"x": box["x"] + box["width"] - 5, "y": box["y"] + 3, "width": 2, "height": 2}
        picture = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("L")
        return int(picture.getpixel((0, 0)))

    assert edge() < 235
    table.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    page.wait_for_timeout(100)
    assert edge() > 250


def test_the_file_can_be_printed(opened):
    """As pages of paper, with the charts and without the controls."""
    page = opened(viewport={"width": 794, "height": 1123})
    page.wait_for_selector("#explore .gantts[aria-busy=false] canvas.gantt-plot")
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert 2 <= paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page/") <= 14
    page.emulate_media(media="print")
    assert page.locator("#explore .chart").first.is_visible()
    assert not page.locator("#explore .controls").first.is_visible()
    assert not page.locator("#explore .downloads").first.is_visible()


def test_no_other_script_runs_in_the_file(browser, report):
    """A script that gets into the page, by whatever way, is held back by the page's policy."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    held_back = []
    page.on("console", lambda note: held_back.append(note.text) if note.type == "error" else None)
    page.goto(report.as_uri())
    page.evaluate("""() => {
        const added = document.createElement("script");
        added.textContent = "window.wasRun = true";
        document.body.append(added);
        document.body.insertAdjacentHTML("beforeend", "<p onclick='window.wasRun = true'>x</p>");
        document.body.lastElementChild.click();
    }""")
    assert page.evaluate("window.wasRun") is None
    assert any("Content Security Policy" in text for text in held_back)
    context.close()
