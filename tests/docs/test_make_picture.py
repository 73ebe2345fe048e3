"""The README's picture is what the code draws."""

from __future__ import annotations

import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def test_picture_is_up_to_date():
    """Drawing the picture again gives the committed file, byte for byte; it is small and valid."""
    drawn = runpy.run_path(str(FOLDER / "make_picture.py"))["picture"]()
    assert drawn == (FOLDER / "overview.svg").read_text("utf-8"), "run `make picture`"
    assert len(drawn.encode()) <= 150_000
    root = ET.fromstring(drawn)  # noqa: S314  (our own file)
    assert len(root.findall("{*}rect")) > 400
    assert [title.text for title in root.findall("{*}title")]
