"""Pages for people: their links lead somewhere, and what they tell one to type exists."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from cyclopts import CycloptsError, MissingArgumentError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            path
            for folder in ("benchmarks", "docs", "examples", "src")
            for path in (ROOT / folder).rglob("*.md")
        ),
    ]
)
each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix()
)
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as renderers of Markdown make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        count = sum(one == name or one.startswith(f"{name}-") for one in found)
        found.add(f"{name}-{count}" if name in found else name)
    return found


@each_page
def test_links_lead_somewhere(page: Path):
    """Every relative link and picture is a file, and every anchor a heading of it."""
    text = FENCE.sub("", page.read_text("utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{link} leads nowhere"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{file.name} has no heading #{anchor}"


def shown_commands(page: Path) -> list[str]:
    """Return the command lines of `yardmaster` that a page shows, in blocks and in sentences."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    fenced = "\n".join(FENCE.findall(text))
    lines = re.findall(r"^(?:\$ )?(yardmaster .*)$", fenced, re.MULTILINE)
    lines += re.findall(r"`(yardmaster [^`]*)`", FENCE.sub("", text))
    return [part for line in lines for part in re.split(r"&&|\||;", line) if "yardmaster" in part]


def mistake(line: str) -> str:
    """Return what is wrong with a command line; that an argument is missing is not."""
    from yardmaster.cli.app import app

    try:
        app.parse_args(shlex.split(line, comments=True)[1:], exit_on_error=False, print_error=False)
    except MissingArgumentError:
        return ""  # a sentence may name a command without saying what to give it
    except CycloptsError as error:
        return f"{line}: {error}"
    return ""


@each_page
def test_shown_commands_exist(page: Path):
    """Every command line parses: the command is there, and so is each of its options."""
    if page.name == "cli.md":
        return  # written by the command line itself
    assert not list(filter(None, map(mistake, shown_commands(page))))


@pytest.mark.parametrize(
    "line",
    [
        "yardmaster simulat",
        "yardmaster simulate --schedulr sjf",
        "yardmaster simulate --engine simpi",
        "yardmaster workload imports may.txt",
        "yardmaster simulate --jobs many  # a comment",
    ],
)
def test_wrong_commands_are_noticed(line: str):
    """A command, an option or a choice that does not exist would be found on a page."""
    assert mistake(line)


def test_pages_are_reached():
    """Every page of docs can be reached by links from the README."""
    seen: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen:
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
        targets = [(page.parent / link).resolve() for link in links if ":" not in link]
        targets += [one / "README.md" for one in targets if one.is_dir()]
        ahead += [one for one in targets if one.suffix == ".md" and one.is_file()]
    assert not [page for page in PAGES if "docs" in page.parts and page not in seen]
