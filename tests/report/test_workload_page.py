"""The page about a workload."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.report.workload_page import (
    lead,
    refuse_to_replace_page,
    render_workload_page,
    write_workload_page,
)
from yardmaster.workloads.description.summary import describe

ACCOUNT = {"stages": [{"what": "rows", "read": 9, "kept": 4,
                       "dropped": [{"reason": "<i>odd</i>", "count": 5}]}]}  # fmt: skip


class Headings(HTMLParser):
    """Collects headings, and every address a page would load something from."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.addresses: list[str] = []
        self._is_heading = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Remember that a heading begins, and what the tag points to."""
        self._is_heading = tag == "h2"
        self.addresses += [
            value for key, value in attrs if key in {"src", "href"} and not value.startswith("#")
        ]

    def handle_data(self, data):
        """Keep the text of a heading."""
        if self._is_heading:
            self.titles.append(data)
            self._is_heading = False


def sample() -> Workload:
    dice = np.random.default_rng(2)
    return Workload.of(
        name="<script>lab",
        notes=["from a & b"],
        begins="2020-04-06T00:00:00",
        submit_s=np.sort(dice.integers(0, 10 * 86_400, 200)).astype(float),
        duration_s=dice.lognormal(6, 2, 200).round(),
        user=[f"u{number}" for number in dice.integers(0, 5, 200)],
    )


def test_the_page_holds_everything(tmp_path: Path):
    """Facts, figures, tables, account, notes and command, with nothing to load from elsewhere."""
    jobs = sample()
    about = describe(jobs, cluster=Cluster.pool(8))
    write_workload_page(jobs, about, tmp_path / "new", account=ACCOUNT, command="make <it>")
    text = (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    page = Headings(text)
    assert page.titles == [
        "At a glance", "Figures", "Sizes and run times", "Users, most GPU time first",
        "Account of the import", "Where it comes from", "What the numbers mean",
        "How to reproduce this",
    ]  # fmt: skip
    assert page.addresses == []
    assert text.count("<svg") == 6
    assert "<script>lab" not in text
    assert "5: &lt;i&gt;odd&lt;/i&gt;" in text
    assert "from a &amp; b" in text
    assert "make &lt;it&gt;" in text
    figures = {path.name for path in (tmp_path / "new" / "figures").iterdir()}
    assert {"rhythm.svg", "rhythm.png", "owners.svg"} <= figures
    numbers = json.loads((tmp_path / "new" / "description.json").read_text(encoding="utf-8"))
    assert numbers["jobs"] == 200
    assert numbers["account"]["stages"][0]["read"] == 9


def test_parts_without_content_are_left_out():
    """No account, no notes, no owners: no headings for them."""
    about = describe(Workload.of(submit_s=[0, 9], duration_s=[1, 1]))
    titles = Headings(render_workload_page(about, ())).titles
    assert "Account of the import" not in titles
    assert "Where it comes from" not in titles
    assert not any("most GPU time" in title for title in titles)


def test_the_lead_says_the_load_or_the_demand():
    """With a cluster the load, without one the GPUs asked for, of a single job neither."""
    jobs = sample()
    assert "a load of" in lead(describe(jobs, cluster=Cluster.pool(8)))
    assert "GPUs on average" in lead(describe(jobs))
    assert lead(describe(Workload.of(submit_s=[0], duration_s=[0]))) == (
        "1 job was submitted within 0 s."
    )


def test_pages_are_not_replaced_unasked(tmp_path: Path):
    """An older page stays unless the user says so; a file is no folder."""
    (tmp_path / "report.html").write_text("old")
    with pytest.raises(YardmasterError, match="is there already"):
        refuse_to_replace_page(tmp_path, overwrite=False)
    refuse_to_replace_page(tmp_path, overwrite=True)
    refuse_to_replace_page(tmp_path / "new", overwrite=False)
    with pytest.raises(YardmasterError, match="not a folder"):
        refuse_to_replace_page(tmp_path / "report.html", overwrite=True)
