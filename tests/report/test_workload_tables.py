"""Workloads as tables: what is said, and what is left unsaid."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.report import workload_tables as tables
from yardmaster.report.renderers import to_terminal
from yardmaster.workloads.description.summary import Description, describe

ACCOUNT = {
    "stages": [
        {"what": "rows of log.csv", "read": 1200, "kept": 1000,
         "dropped": [{"reason": "no GPUs", "count": 150}, {"reason": "not started", "count": 50}]},
        {"what": "jobs", "read": 1000, "kept": 1000, "dropped": []},
    ],
    "censored": {"still running at the end": 7},
    "changed": {},
    "time_zone": "Asia/Shanghai",
    "missing_columns": ["limit"],
    "remarks": ["two <b>files</b>"],
}  # fmt: skip


def sample(jobs: int = 400, **columns: object) -> Workload:
    dice = np.random.default_rng(4)
    given = {
        "name": "lab",
        "begins": "2020-04-06T00:00:00",
        "submit_s": np.sort(dice.integers(0, 14 * 86_400, jobs)).astype(float),
        "duration_s": dice.lognormal(6, 2, jobs).round(),
        "gpus": dice.choice([1, 2, 8, 64], jobs, p=[0.6, 0.2, 0.15, 0.05]),
        "user": [f"u{number}" for number in dice.integers(0, 30, jobs)],
        "tenant": [f"t{number}" if number else None for number in dice.integers(0, 4, jobs)],
        "status": [["completed", "running"][number] for number in dice.integers(0, 2, jobs)],
    }
    return Workload.of(**given | columns)


def facts(about: Description) -> dict[str, str]:
    return dict(tables.overview_facts(about))


def test_the_overview_says_what_is_known():
    """Dates, load, peaks, owners, endings; and below it what no job has."""
    jobs = sample()
    about = describe(jobs, cluster=Cluster.pool(32, name="box"), fits=jobs.gpus <= 32)
    found = facts(about)
    assert found["submitted"].startswith("2020-04-06 0")
    assert "of the 32 GPUs of box; " in found["load"]
    assert found["load"].startswith(f"{jobs.load(32):.2f} ")
    assert found["never fit on it"].startswith(f"{np.count_nonzero(jobs.gpus > 32)} jobs (")
    assert found["users"].startswith("30; u")
    assert found["tenants"].startswith("3; t")
    assert found["endings"].count("%") == 2
    assert "jobs (" in found["censored"]
    assert "estimates" not in found
    assert "recorded waits" not in found
    legend = tables.overview_table(about).legend
    assert legend[0].startswith("Columns without any value: estimate_s, ")


def test_the_overview_without_dates_cluster_and_owners():
    """Nothing is said of what is not there; the assumption about the clock is."""
    bare = Workload.of(submit_s=np.arange(300) * 7200.0, duration_s=np.full(300, 60.0))
    about = describe(bare)
    found = facts(about)
    assert found["submitted"] == "second 0 to 2,152,800; dates unknown"
    assert not {"load", "never fit on it", "users", "tenants", "endings", "censored"} & set(found)
    assert "in the peak day (at 0 s)" in found["GPUs asked for"]
    assert any("Monday" in note for note in tables.overview_table(about).notes)


def test_waits_and_estimates_are_told():
    """Their coverage, and how they compare."""
    jobs = sample(recorded_wait_s=np.full(400, 90.0), estimate_s=np.full(400, 1e6))
    found = facts(describe(jobs))
    assert found["recorded waits"].startswith("for 100 % of the jobs; mean 90 s, p50 90 s")
    assert found["estimates"].endswith(" 0 % too short")


def test_the_size_table_adds_up():
    """One row per class; shares of jobs sum to all."""
    table = tables.size_table(describe(sample()))
    assert [row[0].text for row in table.rows] == ["1", "2-3", "8", "33+"]
    assert sum(int(row[1].text.replace(",", "")) for row in table.rows) == 400
    assert sum(float(row[2].text) for row in table.rows) == pytest.approx(100, abs=0.3)


def test_owners_beyond_the_largest_are_summed_up():
    """Ten users, the twenty others in a row, and jobs of nobody last; loads add up."""
    about = describe(sample(), cluster=Cluster.pool(32))
    users = tables.owner_table(about, "users")
    assert len(users.rows) == 11
    assert users.rows[-1][0].text == "20 other users"
    assert sum(int(row[1].text.replace(",", "")) for row in users.rows) == 400
    tenants = tables.owner_table(about, "tenants")
    assert tenants.rows[-1][0].text == "(none)"
    loads = [float(row[-1].text) for row in tenants.rows]
    assert sum(loads) == pytest.approx(about.demand.load.load, abs=0.005)
    assert tables.owner_table(describe(sample(user=None)), "users") is None


def test_everything_fits_a_narrow_terminal():
    """No line is longer than the terminal is wide."""
    about = describe(sample(), cluster=Cluster.pool(32))
    for table in (tables.overview_table(about), tables.size_table(about)):
        assert max(map(len, to_terminal(table, width=70).splitlines())) <= 70


def test_names_from_files_do_no_harm():
    """Control characters in names are replaced, long names cut."""
    jobs = sample(tenant=["evil\x1b[31m" + "x" * 80] * 400, name="a\nb")
    about = describe(jobs)
    text = to_terminal(tables.overview_table(about)) + to_terminal(
        tables.owner_table(about, "tenants")
    )
    assert "\x1b" not in text
    assert "x" * 40 not in text


def test_the_account_of_an_import():
    """Rows read, kept and dropped by reason, and what else the importer booked."""
    found = tables.account_facts(ACCOUNT)
    assert ("rows of log.csv", "1,200 read, 1,000 kept") in found
    assert ("dropped", "150: no GPUs") in found
    assert ("censored", "7 jobs still running at the end") in found
    assert ("time zone", "Asia/Shanghai") in found
    assert ("columns missing", "limit") in found
    assert len(tables.account_table(ACCOUNT).rows) == len(found) == 8
    assert tables.account_facts({}) == []


@pytest.mark.parametrize(
    ("values", "bars"), [([0, 7, 14], "▁▅█"), ([0, 0], "▁▁"), ([np.nan, 2], "▁█")]
)
def test_bars(values, bars):
    """From nothing to the largest."""
    assert tables.sparkline(np.array(values, dtype=float)) == bars


def test_a_single_job_can_be_told():
    """No rates, no quantiles of gaps, no division by nothing."""
    about = describe(Workload.of(submit_s=[5], duration_s=[0]), cluster=Cluster.pool(4))
    assert tables.title(about) == "workload: 1 job over 0 s"
    found = facts(about)
    assert "jobs per hour" not in found
    assert "load" not in found
    assert tables.size_table(about).rows[0][3].text == "–"
