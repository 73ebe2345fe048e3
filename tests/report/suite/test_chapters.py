"""The content of a report."""

from __future__ import annotations

from dataclasses import replace

from yardmaster.report.suite.chapters import chapters
from yardmaster.report.suite.experiment import Experiment


def test_there_is_a_chapter_for_everything_that_was_run(experiment: Experiment):
    """Families, disturbances and changes each have theirs, and no two files share a name."""
    found = chapters(experiment)
    assert [chapter.name for chapter in found] == [
        "schedulers-plain", "robustness-plain", "schedulers-drift", "recovery-drift",
    ]  # fmt: skip
    names = [sketch.name for chapter in found for sketch in chapter.sketches]
    tables = [named.name for chapter in found for named in chapter.tables]
    assert len(set(names)) == len(names)
    assert len(set(tables)) == len(tables)
    assert len(found[0].maps) == 3


def test_without_completion_times_their_curves_are_left_out(experiment: Experiment):
    """A lost store costs one figure per family, not the report."""
    found = chapters(replace(experiment, jct_quantiles_s=None))
    names = [sketch.name for chapter in found for sketch in chapter.sketches]
    assert not [name for name in names if name.startswith("jct-cdf")]
