"""docs/reference is what the code says."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_reference_is_up_to_date():
    """Writing the reference again gives the committed pages, byte for byte, and no other page."""
    pages = runpy.run_path(str(DOCS / "build_reference.py"))["pages"]()
    committed = {path.name: path.read_text("utf-8") for path in (DOCS / "reference").iterdir()}
    stale = [name for name, text in pages.items() if committed.get(name) != text]
    assert not stale, f"run `make reference`: {stale} are not what the code says"
    assert set(pages) == set(committed)


def test_every_name_is_in_the_reference():
    """No order, discipline, placement, metric or reward is left out."""
    from yardmaster.envs.rewards import REWARDS
    from yardmaster.metrics.catalogue import METRIC_NAMES
    from yardmaster.schedulers.language import DISCIPLINES, PLACEMENTS

    schedulers = (DOCS / "reference" / "schedulers.md").read_text("utf-8")
    metrics = (DOCS / "reference" / "metrics.md").read_text("utf-8")
    learning = (DOCS / "reference" / "learning.md").read_text("utf-8")
    assert schedulers.count("\n### `") >= 33
    assert all(f"\n| {name} |" in schedulers for name in [*DISCIPLINES, *PLACEMENTS])
    assert all(f"\n### `{name}`\n" in metrics for name in METRIC_NAMES)
    assert all(f"\n| `{name}` |" in learning for name in REWARDS)
