"""Printing tables."""

import json

import pytest

from yardmaster.cli.printing import print_table
from yardmaster.report.tables import Cell, Column, Table

NOTES = (
    "import: 32 jobs read, 24 kept",
    "import: dropped 8: no GPU",
    "6 of 24 jobs can never be placed",
)
TABLE = Table("title", (Column("a"),), ((Cell("1"),),), (), NOTES, {}, ())


@pytest.mark.parametrize("style", ["table", "csv"])
def test_notes_of_an_import_are_one_line(style: str, capsys: pytest.CaptureFixture[str]):
    """The import is one line, none where quiet is asked for; what the run found out stays."""
    print_table(TABLE, style)
    shown = "".join(capsys.readouterr())
    assert shown.count("import: ") == 1
    assert "24 of 32 jobs kept" in shown
    print_table(TABLE, style, quiet=True)
    shown = "".join(capsys.readouterr())
    assert "import" not in shown
    assert "can never be placed" in shown


def test_json_has_all_notes(capsys: pytest.CaptureFixture[str]):
    """Programs get every note."""
    print_table(TABLE, "json", quiet=True)
    assert json.loads(capsys.readouterr().out)["notes"] == list(NOTES)
