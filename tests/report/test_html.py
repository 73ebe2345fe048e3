"""The HTML report: one file, safe, complete and the same every time."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.report.exploration import exploration_script
from yardmaster.report.html import render_report, write_report
from yardmaster.report.page import policy_with
from yardmaster.report.tables import comparison_table
from yardmaster.report.verdict import headline

COMMAND = "yardmaster compare synthetic --seeds 8"
VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self._open = [], [], [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        """Remember an opening tag."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Remember a tag that closes itself."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        """Check that the innermost open tag is closed."""
        assert self._open.pop() == tag

    def handle_data(self, data):
        """Remember text."""
        self.words.append(data)


@pytest.fixture(scope="module")
def text(comparison):
    """Return the report's text."""
    return render_report(comparison, command=COMMAND)


@pytest.fixture(scope="module")
def page(text):
    """Return the parsed report."""
    return Page(text)


def test_the_page_holds_headline_table_figures_and_command(comparison, page):
    """Everything a reader needs is on the page."""
    words = " ".join(page.words)
    assert headline(comparison) in words
    assert COMMAND in words
    assert page.tags.count("figure") == 6
    assert page.tags.count("svg") == 6
    assert comparison.notes[0] in words
    for row in comparison_table(comparison).rows:
        for cell in row:
            assert cell.text.split(" [")[0] in words


def test_every_metric_shown_is_defined(comparison, text):
    """Each column with a number has its definition further down."""
    titles = [column.title for column in comparison_table(comparison).columns[3:]]
    terms = re.findall(r"<dt>(.*?)</dt>", text)
    assert set(titles) <= set(terms)


def test_the_page_is_self_contained(text, page):
    """No addresses, nothing to fetch, and a policy that forbids it and any script but one."""
    forbidden = {"link", "img", "iframe", "object", "embed", "base", "form", "a"}
    assert not set(page.tags) & forbidden
    script = exploration_script()
    assert re.findall(r"https?:[^\"]*", text) == ["http://www.w3.org/2000/svg"]  # a name in SVG
    markup = re.sub(r'(<script type="text/plain" id="[\w-]+">)[^<]*', r"\1", text)
    assert not re.search(r"(?<!:)//[a-z]|@import|url\((?!#)", markup.replace(script, ""))
    assert text.count(f"<script>{script}</script>") == 1
    assert text.count("<script") == 1 + text.count('<script type="text/plain" id="')
    names = {name for name, _ in page.attributes}
    assert not any(name.startswith("on") or name == "src" for name in names)
    hrefs = [value for name, value in page.attributes if name == "href"]
    assert all(value.startswith("#") for value in hrefs)
    assert ("content", policy_with(script)) in page.attributes
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy_with(script) == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:;"
        f" script-src 'sha256-{digest}'"
    )


def test_the_page_reads_on_phones_in_the_dark_and_on_paper(text):
    """Viewport, dark colours and print rules are there, and wide tables scroll."""
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert "overflow-x: auto" in text


def test_ids_are_unique_on_the_page(page):
    """Inlined figures do not share ids."""
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_hostile_names_cannot_act(hostile):
    """Names full of markup stay text wherever they are shown."""
    text = render_report(hostile, command="run <script>alert(2)</script>\n--next")
    page = Page(text)
    assert text.count("<script") == 1 + text.count('<script type="text/plain" id="')
    assert any("<script>alert(1)</script>" in words for words in page.words)
    assert not any("alert" in (value or "") for _, value in page.attributes)


def test_the_report_is_the_same_every_time(comparison, text):
    """Same comparison, same bytes."""
    assert render_report(comparison, command=COMMAND) == text


def test_the_report_is_written_whole(comparison, text, tmp_path):
    """The file replaces an older one, folders are made, no draft is left behind."""
    path = tmp_path / "deep" / "report.html"
    path.parent.mkdir()
    path.write_text("old")
    assert write_report(comparison, path, command=COMMAND) == path
    assert path.read_text(encoding="utf-8") == text
    assert list(path.parent.iterdir()) == [path]
    assert write_report(comparison, tmp_path / "new" / "report.html").exists()


def test_a_path_that_cannot_be_written_is_a_clear_error(comparison, tmp_path):
    """The error names the file, and nothing is left behind."""
    for folder in (tmp_path, "", "/"):
        with pytest.raises(YardmasterError, match="it is a folder"):
            write_report(comparison, folder)
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(YardmasterError, match=r"file.report\.html"):
        write_report(comparison, occupied / "report.html")
    assert list(tmp_path.iterdir()) == [occupied]


def test_a_report_without_command_or_schedules_is_still_a_report(one_job):
    """Little data gives a short page, not an error."""
    assert "<pre" not in render_report(one_job)


def test_size_is_fit_for_a_mail(text):
    """Twelve schedulers and three schedules to explore fit into less than half a megabyte."""
    assert len(text.encode()) < 480_000
