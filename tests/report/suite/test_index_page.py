"""The page of an experiment."""

from __future__ import annotations

from dataclasses import replace

from yardmaster.report.suite.experiment import Experiment
from yardmaster.report.suite.index_page import headline, render_index


def test_the_headline_names_the_best_of_every_family(experiment: Experiment):
    """Each family and objective has its best fixed scheduler, with its distance to the oracle."""
    text = headline(experiment)
    assert "Best fixed scheduler on plain: best+skip by mean JCT" in text
    assert "worst+easy by p95 JCT" in text
    assert "0.0 % behind the best of each run" in text
    assert "on drift" in text


def test_what_is_missing_is_said(experiment: Experiment):
    """Failed runs, a lost store and hostile names are told as text."""
    broken = replace(
        experiment,
        name="<b>mine</b>",
        jct_quantiles_s=None,
        failures=("sjf on x, seed 1: no memory",),
    )
    page = render_index(broken, (), {}, picture_endings=(), table_endings=())
    assert "1 run could not be made." in page
    assert "no memory" in page
    assert "no curves of completion times" in page
    assert "<b>" not in page
