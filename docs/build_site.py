"""Build the documentation as a folder of HTML that opens without a server and without a network.

The pages are the repository's Markdown: README, CONTRIBUTING, CHANGELOG, everything in docs, and
whatever these link to; programs and lists that are linked become pages, pictures are copied. The
sections of docs/index.md are the navigation. Every link, anchor and picture is followed on the way:
one that leads nowhere is told with file and line, and nothing is built.

python docs/build_site.py            # writes site/; or: make site
python docs/build_site.py --check    # builds nothing; exits 1 if a link leads nowhere
python docs/build_site.py --external # lists the links that lead elsewhere, which nobody follows
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from string import Template
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = Path(__file__).resolve().parent / "template"
STYLES = ROOT / "src" / "yardmaster" / "report" / "web" / "base.css"
"""Colours and type, shared with the dashboard and the report."""

BEGINNINGS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PICTURES = {".svg", ".png", ".jpg", ".jpeg"}
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
RAW_LINK = re.compile(r"<[^>]*\s(?:href|src)\s*=", re.IGNORECASE)
PASSAGE = 30_000
"""Most letters of a section that can be searched."""


class BrokenLinksError(Exception):
    """Links that lead nowhere: one line for each, with file and line."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link or a picture, where it stands, and the token whose attribute it is."""

    line: int
    target: str
    token: Token
    attribute: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page; `token` is what is given the anchor."""

    level: int
    anchor: str
    text: str
    token: Token


@dataclass(slots=True)
class Page:
    """One page: its source, what it is made of, and what it says."""

    source: PurePosixPath
    """Path in the repository."""
    tokens: list[Token]
    title: str = ""
    links: list[Link] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    passages: list[tuple[str, str, str]] = field(default_factory=list)
    """Anchor, heading and text of each section, to be searched."""

    @property
    def address(self) -> PurePosixPath:
        """Where the page lies in the site."""
        return address_of(self.source)


def address_of(source: PurePosixPath) -> PurePosixPath:
    """Return where a file of the repository lies in the site."""
    inside = source.relative_to("docs") if source.is_relative_to("docs") else source
    if source.suffix in PICTURES:
        return inside
    if source.suffix != ".md":
        return inside.with_name(f"{inside.name}.html")
    if source.stem == "README" and len(source.parts) > 1:
        return inside.with_name("index.html")
    return inside.with_name(f"{inside.stem.lower()}.html")


def anchor_of(text: str, taken: set[str]) -> str:
    """Return the anchor of a heading, as GitHub and other viewers of Markdown make it."""
    name = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
    number, anchor = 0, name
    while anchor in taken:
        number += 1
        anchor = f"{name}-{number}"
    taken.add(anchor)
    return anchor


def words_of(token: Token) -> str:
    """Return what an inline token says, without its marks."""
    parts = (" " if child.type in {"softbreak", "hardbreak"} else child.content
             for child in token.children or ())  # fmt: skip
    return "".join(parts)


class Site:
    """All pages of a repository, found by following links."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pages: dict[PurePosixPath, Page] = {}
        self.pictures: set[PurePosixPath] = set()
        self.external: list[str] = []
        self.problems: list[str] = []
        self._markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        self._markdown.options["highlight"] = coloured
        begin = [PurePosixPath(name) for name in BEGINNINGS if (root / name).is_file()]
        begin += [
            PurePosixPath(path.relative_to(root).as_posix())
            for path in sorted((root / "docs").rglob("*.md"))
        ]
        self._ahead = list(reversed(begin))
        while self._ahead:
            self._read(self._ahead.pop())
        for page in list(self.pages.values()):
            for link in page.links:
                self._follow(page, link)
        self._navigate()

    # Reading

    def _read(self, source: PurePosixPath) -> None:
        """Add the page of a file or folder, and what it links to."""
        if source in self.pages:
            return
        path = self.root / source
        text = path.read_text("utf-8") if source.suffix == ".md" else listing(path)
        page = Page(source, self._markdown.parse(text))
        self.pages[source] = page
        self._take_apart(page)
        page.title = page.headings[0].text if page.headings else source.name
        for link in page.links:
            target = self._target(page, link)
            if target is None or not (self.root / target).exists():
                continue
            if target.suffix in PICTURES:
                self.pictures.add(target)
            else:
                self._ahead.append(target)

    def _take_apart(self, page: Page) -> None:
        """Find headings, links and what can be searched."""
        taken: set[str] = set()
        section: list[str] = []
        place, line = ("", ""), 1
        for before, token in zip([None, *page.tokens], page.tokens, strict=False):
            if token.map:
                line = token.map[0] + 1
            if token.type in {"html_block", "fence", "code_block"}:
                self._refuse_raw_links(page, token, line)
                if token.type != "html_block":
                    section.append(token.content)
            if token.type != "inline":
                continue
            words = words_of(token)
            if before is not None and before.type == "heading_open":
                page.passages.append((*place, " ".join(section)))
                anchor = anchor_of(words, taken)
                page.headings.append(Heading(int(before.tag[1]), anchor, words, before))
                before.attrSet("id", anchor)
                place, section = (anchor, words), []
            else:
                section.append(words)
            for child in token.children or ():
                if child.type in {"softbreak", "hardbreak"}:
                    line += 1
                if child.type == "html_inline":
                    self._refuse_raw_links(page, child, line)
                name = {"link_open": "href", "image": "src"}.get(child.type)
                if name:
                    page.links.append(Link(line, str(child.attrs[name]), child, name))
        page.passages.append((*place, " ".join(section)))

    def _refuse_raw_links(self, page: Page, token: Token, line: int) -> None:
        if token.type.startswith("html") and RAW_LINK.search(token.content):
            self.problems.append(
                f"{page.source}:{line}: a link in HTML is not checked; write it in Markdown"
            )

    # Following

    def _target(self, page: Page, link: Link) -> PurePosixPath | None:
        """Return the file that a link leads to, None if it leads elsewhere or out of here."""
        path = unquote(link.target.partition("#")[0])
        if ELSEWHERE.match(link.target):
            return None
        if not path:
            return page.source
        found = os.path.normpath(self.root / page.source.parent / path)
        if not Path(found).is_relative_to(self.root):
            return None
        target = PurePosixPath(Path(found).relative_to(self.root).as_posix())
        is_folder = (self.root / target).is_dir()
        return target / "README.md" if is_folder and self._has_readme(target) else target

    def _has_readme(self, folder: PurePosixPath) -> bool:
        return (self.root / folder / "README.md").is_file()

    def _follow(self, page: Page, link: Link) -> None:
        """Lead a link to the page of its file, or say that there is none."""
        place = f"{page.source}:{link.line}"
        if ELSEWHERE.match(link.target):
            self.external.append(f"{place}: {link.target}")
            return
        target, anchor = self._target(page, link), link.target.partition("#")[2]
        if target is None:
            self.problems.append(f"{place}: {link.target} leads out of the repository")
            return
        if target not in self.pages and target not in self.pictures:
            self.problems.append(f"{place}: {link.target} leads nowhere")
            return
        if anchor:
            there = self.pages.get(target)
            if there is None or anchor not in {heading.anchor for heading in there.headings}:
                self.problems.append(f"{place}: {target} has no heading #{anchor}")
                return
        address = "" if target == page.source else relative(address_of(target), page.address)
        link.token.attrSet(link.attribute, address + (f"#{anchor}" if anchor else "") or "#")

    # Navigation

    def _navigate(self) -> None:
        """Read the sections of docs/index.md; every page of docs must be in one, or in a folder."""
        index = PurePosixPath("docs/index.md")
        self.sections: list[tuple[str, list[tuple[str, PurePosixPath]]]] = []
        if index not in self.pages:
            self.problems.append(f"{index}:1: is missing, and with it the navigation")
            return
        seen = {index}
        for heading, label, link in linked(self.pages[index]):
            target = self._target(self.pages[index], link)
            is_part = "#" in link.target  # a page is led to as a whole once, elsewhere
            if is_part or target is None or target not in self.pages or target in seen:
                continue
            if not self.sections or self.sections[-1][0] != heading:
                self.sections.append((heading, []))
            self.sections[-1][1].append((label, target))
            seen.add(target)
        for source in self.pages:
            is_led_to = source in seen or source.parent / "README.md" in seen
            if source.is_relative_to("docs") and source.suffix == ".md" and not is_led_to:
                self.problems.append(f"{source}:1: is in no section of {index}")

    def siblings(self, source: PurePosixPath) -> list[PurePosixPath]:
        """Return the pages beside a folder's README, in the order in which it names them."""
        folder = source.parent
        readme = folder / "README.md"
        if readme not in self.pages or len(folder.parts) < 2:
            return []
        named = [self._target(self.pages[readme], link) for link in self.pages[readme].links]
        beside = [one for one in self.pages if one.parent == folder and one != readme]
        return sorted(beside, key=lambda one: (named.index(one) if one in named else 999, one))

    # Writing

    def write(self, out: Path) -> None:
        """Write all pages, pictures, styles and scripts into an empty folder.

        Raises:
            BrokenLinksError: if a link leads nowhere; nothing is written then.
        """
        self.check()
        renderer = self._markdown.renderer
        frame = Template((TEMPLATE / "page.html").read_text("utf-8"))
        for page in self.pages.values():
            body = renderer.render(page.tokens, self._markdown.options, {})
            text = frame.substitute(
                title=html.escape(page.title),
                root=relative(PurePosixPath(), page.address),
                navigation=self._navigation(page),
                contents=contents(page),
                source=html.escape(str(page.source)),
                body=scrolling(body),
            )
            path = out / page.address
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        for picture in self.pictures:
            path = out / address_of(picture)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / picture, path)
        for extra in (STYLES, TEMPLATE / "site.css", TEMPLATE / "site.js"):
            shutil.copyfile(extra, out / extra.name)
        # A script and no JSON: pages opened as files may not fetch, but may load scripts.
        index = json.dumps(list(self._search()), ensure_ascii=False, separators=(",", ":"))
        (out / "search_index.js").write_text(f"window.SEARCH_INDEX={index};\n", "utf-8")

    def check(self) -> None:
        """Raise if a link leads nowhere.

        Raises:
            BrokenLinksError: with a line for each.
        """
        if self.problems:
            raise BrokenLinksError("\n".join(self.problems))

    def _search(self) -> Iterator[list[str]]:
        """Yield address, page, heading and text of every section."""
        for page in self.pages.values():
            for anchor, heading, text in page.passages:
                if text.strip() or heading:
                    address = f"{page.address}{'#' if anchor else ''}{anchor}"
                    shown = "" if heading == page.title else heading
                    yield [address, page.title, shown, " ".join(text.split())[:PASSAGE]]

    def _navigation(self, page: Page) -> str:
        """Return the sections as lists, with the current page marked."""
        parts = [self._item("Where to go for what", PurePosixPath("docs/index.md"), page, [])]
        lists = [f"<ul>{parts[0]}</ul>"]
        for heading, entries in self.sections:
            items = "".join(
                self._item(label, target, page, self._nested(target, page))
                for label, target in entries
            )
            lists.append(f"<h2>{html.escape(heading)}</h2><ul>{items}</ul>")
        return "\n".join(lists)

    def _nested(self, target: PurePosixPath, page: Page) -> Sequence[PurePosixPath]:
        """Return the pages to show below an entry: those of its folder, to who is in it."""
        is_here = target.name == "README.md" and page.source.parent == target.parent
        listed = {one for _, entries in self.sections for _, one in entries}
        return [one for one in self.siblings(target) if one not in listed] if is_here else []

    def _item(
        self, label: str, target: PurePosixPath, page: Page, nested: Sequence[PurePosixPath]
    ) -> str:
        mark = ' aria-current="page"' if target == page.source else ""
        address = html.escape(relative(address_of(target), page.address))
        inner = "".join(self._item(self.pages[one].title, one, page, []) for one in nested)
        below = f"<ul>{inner}</ul>" if inner else ""
        return f'<li><a href="{address}"{mark}>{html.escape(label)}</a>{below}</li>'

    @cached_property
    def words(self) -> str:
        """How large the site is, in words."""
        links = sum(len(page.links) for page in self.pages.values())
        return f"{len(self.pages)} pages, {len(self.pictures)} pictures, {links:,} links"


def linked(page: Page) -> Iterator[tuple[str, str, Link]]:
    """Yield the links of a page below a heading of the second level: heading, label, link."""
    by_token = {id(link.token): link for link in page.links}
    heading, before = "", None
    for token in page.tokens:
        if token.type == "inline" and before is not None and before.type == "heading_open":
            heading = words_of(token) if before.tag == "h2" else heading
        elif token.type == "inline" and heading:
            children = token.children or []
            for number, child in enumerate(children):
                if id(child) in by_token and child.type == "link_open":
                    yield heading, children[number + 1].content, by_token[id(child)]
        before = token


def listing(path: Path) -> str:
    """Return a file that is no Markdown, or a folder, as a page of Markdown."""
    if path.is_dir():
        names = sorted(one.name for one in path.iterdir() if one.is_file())
        links = (f"- [{name}]({path.name}/{name})\n" for name in names)
        return f"# {path.name}\n\n{''.join(links)}"
    return f"# {path.name}\n\n~~~~{path.name}\n{path.read_text('utf-8').rstrip()}\n~~~~\n"


def coloured(code: str, language: str, _attributes: str) -> str:
    """Return code with its words marked for colouring; `language` may be the name of a file."""
    try:
        is_file = "." in language
        lexer = (get_lexer_for_filename if is_file else get_lexer_by_name)(language or "text")
    except ClassNotFound:
        lexer = TextLexer()
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def relative(address: PurePosixPath, start: PurePosixPath) -> str:
    """Return the way from one page of the site to another."""
    return PurePosixPath(os.path.relpath(address, start.parent)).as_posix()


def scrolling(body: str) -> str:
    """Let wide tables scroll by themselves, and headings be linked to."""
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    linked_heading = (
        r'<\1 id="\2">\3<a class="self" href="#\2" aria-label="Link to here">#</a></\1>'
    )
    return re.sub(r'<(h[1-6]) id="([^"]*)">(.*?)</\1>', linked_heading, body)


def contents(page: Page) -> str:
    """Return what is on the page: its headings of the first level that has several."""
    levels = [heading.level for heading in page.headings]
    shown = next((level for level in (2, 3) if levels.count(level) > 1), 0)
    items = "".join(
        f'<li><a href="#{html.escape(one.anchor)}">{html.escape(one.text)}</a></li>'
        for one in page.headings
        if one.level == shown
    )
    return f"<h2>On this page</h2><ul>{items}</ul>" if items else ""


def main() -> int:
    """Build the site, or check the links, or list those that lead elsewhere."""
    parser = argparse.ArgumentParser(description="Build the documentation as HTML.")
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="folder to write")
    parser.add_argument("--check", action="store_true", help="follow the links; write nothing")
    parser.add_argument("--external", action="store_true", help="list links that lead elsewhere")
    options = parser.parse_args()
    site = Site(ROOT)
    if options.external:
        sys.stdout.write("".join(f"{line}\n" for line in site.external))
        return 0
    try:
        site.check()
    except BrokenLinksError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if not options.check:
        if options.out.exists() and not (options.out / "search_index.js").is_file():
            sys.stderr.write(f"{options.out} is there and is no site; nothing was written\n")
            return 1
        shutil.rmtree(options.out, ignore_errors=True)
        options.out.mkdir(parents=True)
        site.write(options.out)
        sys.stdout.write(f"{options.out / 'index.html'}: ")
    sys.stdout.write(f"{site.words}, all of which lead somewhere\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
