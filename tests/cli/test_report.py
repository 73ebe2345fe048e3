"""`yardmaster report`."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.cli.report import report
from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.document import load_suite
from yardmaster.experiments.suite.run import run_suite

TINY = """
name = "tiny"
schedulers = ["srpt+skip", "static-equal+skip"]
seeds = 2
objectives = ["mean_jct_s"]

[[regimes]]
family = "rlmetadqn"
where = { shape = ["base"], intensity = ["low"], gpus = [2, 4] }
"""


def test_an_experiment_is_reported_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The folder of a real experiment becomes a page; a second report replaces the first."""
    document = tmp_path / "tiny.toml"
    document.write_text(TINY, encoding="utf-8")
    suite = load_suite(document)
    run_suite(suite, tmp_path / "run", workers=1)
    report(tmp_path / "run", quiet=True)
    page = tmp_path / "run" / "report" / "index.html"
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text(encoding="utf-8")
    assert "srpt+skip" in text
    assert "<h1>tiny</h1>" in text
    (page.parent / "old.txt").write_text("of the first report")
    report(tmp_path / "run")
    assert not (page.parent / "old.txt").exists()
    assert page.read_text(encoding="utf-8") == text


def test_a_folder_without_results_is_refused(tmp_path: Path):
    """What is no experiment is said to be none."""
    with pytest.raises(YardmasterError, match="run the experiment first"):
        report(tmp_path)


def test_a_damaged_table_is_said_to_be(tmp_path: Path):
    """Neither an experiment's nor a study's ends in an error of the library."""
    for name in ("results.parquet", "lookahead.parquet"):
        (tmp_path / name).write_text("junk")
        with pytest.raises(YardmasterError, match=f"{name} is damaged"):
            report(tmp_path)
