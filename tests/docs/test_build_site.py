"""The documentation as HTML: every link of it leads somewhere, and it works as plain files."""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILDER = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "build_site.py")))
CHROMIUM = Path(os.environ.get("YARDMASTER_CHROMIUM", "/usr/bin/chromium"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the whole site, built once."""
    out = tmp_path_factory.mktemp("site")
    begun = time.process_time()
    BUILDER.Site(ROOT).write(out)
    assert time.process_time() - begun < 10
    return out


class Read(HTMLParser):
    """What a page links to, loads, and can be linked at."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.current = 0
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links and anchors."""
        known = dict(attrs)
        self.ids += [known["id"] or ""] if "id" in known else []
        if tag == "a":
            self.links.append(known["href"] or "")
        elif address := known.get("src") or (known.get("href") if tag == "link" else None):
            self.loads.append(address)
        self.current += known.get("aria-current") == "page"


def test_every_link_of_every_page_leads_somewhere(site: Path):
    """Links and anchors of the finished pages, navigation included, are files and ids of them."""
    pages = {path: Read(path) for path in site.rglob("*.html")}
    assert len(pages) > 80
    followed = 0
    for path, page in pages.items():
        assert len(set(page.ids)) == len(page.ids), f"{path} has an anchor twice"
        for link in page.links:
            if link.startswith(("http:", "https:", "mailto:")):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            assert target in pages, f"{path.relative_to(site)}: {link}"
            assert not anchor or unquote(anchor) in pages[target].ids, f"{path}: {link}"
            followed += 1
    assert followed > 2000


def test_nothing_comes_from_elsewhere(site: Path):
    """Scripts, styles and pictures of every page lie in the folder itself."""
    for path in site.rglob("*.html"):
        for address in Read(path).loads:
            is_there = address == "data:," or (path.parent / address).resolve().is_file()
            assert is_there, f"{path.relative_to(site)} loads {address}"


def test_the_current_page_is_marked(site: Path):
    """Every page of docs stands in the navigation, marked once; so do README and others."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for source in pages:
        address = BUILDER.address_of(Path(source).relative_to(ROOT))
        assert Read(site / address).current == 1, source


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., str]:
    """Return a function that reads a small repository and tells what is wrong with its links."""

    def problems(**pages: str) -> str:
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / "index.md").write_text("# Index\n\n## All\n\n- [Page](page.md)\n")
        for name, text in pages.items():
            (tmp_path / "docs" / f"{name}.md").write_text(text, "utf-8")
        try:
            BUILDER.Site(tmp_path).write(tmp_path / "out")
        except BUILDER.BrokenLinksError as error:
            return str(error)
        return ""

    return problems


BROKEN = [
    ("[x](missing.md)", "docs/page.md:3: missing.md leads nowhere"),
    ("[x](index.md#nothing)", "docs/page.md:3: docs/index.md has no heading #nothing"),
    ("[x](#nothing)", "docs/page.md:3: docs/page.md has no heading #nothing"),
    ("![x](missing.svg)", "docs/page.md:3: missing.svg leads nowhere"),
    ("[x](../../elsewhere.md)", "docs/page.md:3: ../../elsewhere.md leads out of the repository"),
    ("two lines,\nthen [x](missing.md)", "docs/page.md:4: missing.md leads nowhere"),
    ("| a |\n|---|\n| b |\n| [x](missing.md) |", "docs/page.md:6: missing.md leads nowhere"),
    ('<a href="index.md">x</a>', "docs/page.md:3: a link in HTML is not checked"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_links_are_found(build: Callable[..., str], text: str, message: str):
    """A link, an anchor or a picture that leads nowhere is told with file and line."""
    assert message in build(page=f"# Page\n\n{text}\n")


def test_good_links_are_not_complained_about(build: Callable[..., str], tmp_path: Path):
    """Links to pages, headings, folders and programs work; code that looks like links is code."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "one.py").write_text("print('<b>')\n")
    text = (
        "# Page\n\n## Twice\n\n## Twice\n\n[a](index.md#all) [b](#twice-1) [c](../tools)"
        " [d](../tools/one.py) [e](https://example.org) `[f](missing.md)`\n"
    )
    assert build(page=text) == ""
    made = (tmp_path / "out" / "page.html").read_text("utf-8")
    assert 'href="index.html#all"' in made
    assert 'href="tools/one.py.html"' in made
    assert "&lt;b&gt;" in (tmp_path / "out" / "tools" / "one.py.html").read_text("utf-8")
    assert BUILDER.Site(tmp_path).external == ["docs/page.md:7: https://example.org"]


def test_pages_nobody_is_led_to_are_found(build: Callable[..., str]):
    """A page of docs that no section of the index names is told."""
    assert "docs/lost.md:1: is in no section" in build(page="# Page", lost="# Lost")


def test_other_folders_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder that is no site is not replaced."""
    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.setattr("sys.argv", ["build_site.py", "--out", str(tmp_path)])
    assert BUILDER.main() == 1
    assert (tmp_path / "mine.txt").is_file()


@pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no Chromium")
def test_it_works_as_plain_files(site: Path):
    """Opened from the disk: a search finds a section and leads there, themes change, phones fit."""
    # In a thread of its own: other tests of this process may have a browser open already.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(what_fails_in_a_browser, site).result() == []


def what_fails_in_a_browser(site: Path) -> list[str]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as kit:
        browser = kit.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        failed: list[str] = []
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.on("requestfailed", lambda request: failed.append(request.url))
        page.goto((site / "results.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.click("#menu")
        assert page.is_visible("nav a[aria-current]")
        page.keyboard.press("/")
        page.keyboard.type("jain_slowdown")
        page.wait_for_selector("#found a")
        page.keyboard.press("Enter")
        page.wait_for_url("**/reference/metrics.html#jain_slowdown")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.click("#theme")
        page.click("#theme")
        assert page.evaluate(ground) != light
        page.goto((site / "index.html").as_uri())
        assert page.evaluate(ground) != light  # it is remembered
        browser.close()
    return failed
