"""What others made is kept unchanged, with its licence and where it comes from."""

from __future__ import annotations

import hashlib
import re
from importlib import resources

FOLDER = resources.files("yardmaster.report").joinpath("web", "vendor")


def test_vendored_files_are_the_published_ones():
    """Every file has a line with its checksum, and every checksum is the file's."""
    text = FOLDER.joinpath("VENDORED.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", text, re.MULTILINE)
    present = {item.name for item in FOLDER.iterdir()} - {"VENDORED.md"}
    assert dict(lines).keys() == present
    for name, digest in lines:
        assert hashlib.sha256(FOLDER.joinpath(name).read_bytes()).hexdigest() == digest
        assert name.endswith(".txt") or "MIT" in text


def test_no_page_names_another_server():
    """Own scripts, styles and pages hold no address of any other host."""
    web = resources.files("yardmaster.report").joinpath("web")
    pages = resources.files("yardmaster.dashboard").joinpath("pages")
    own = [item for folder in (web, pages) for item in folder.iterdir() if item.is_file()]
    assert len(own) > 20
    for item in own:
        addresses = re.findall(r"(?:https?:)?//[\w-]+\.[\w.-]+", item.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org"}, item.name
