"""Pictures of workloads: what is drawn, when nothing is, and that they are well formed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.report.workload_figures import MOST_BINS, time_bins, workload_pictures
from yardmaster.workloads.description.summary import describe

SVG = "{http://www.w3.org/2000/svg}"


def sample(days: float, jobs: int = 300, **columns: object) -> Workload:
    dice = np.random.default_rng(1)
    given = {
        "submit_s": np.sort(dice.random(jobs)) * days * 86_400,
        "duration_s": dice.lognormal(6, 2, jobs),
        "gpus": dice.choice([1, 2, 4, 8, 16, 32, 64], jobs),
        "user": [f"$u_{number}$" for number in dice.integers(0, 9, jobs)],
    }
    return Workload.of(**given | columns)


def drawn(jobs: Workload, **options: object) -> dict[str, object]:
    pictures = workload_pictures(jobs, describe(jobs, **options))
    return {picture.figure.name: picture for picture in pictures}


@pytest.mark.parametrize("begins", ["2020-04-08T07:30:00", ""])
def test_every_picture_is_whole(begins):
    """Well-formed SVG with its words, a PNG of the same, and ids of its own."""
    jobs = sample(30, begins=begins)
    pictures = drawn(jobs, cluster=Cluster.pool(64, name="box & co"))
    assert list(pictures) == ["rhythm", "arrivals", "demand", "sizes", "durations", "owners"]
    for name, (figure, png) in pictures.items():
        root = ET.fromstring(figure.svg)  # noqa: S314 - our own text
        assert root.find(f"{SVG}desc").text == figure.alt
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert all(each.startswith(f"{name}-") for each in ids)
        assert png.startswith(b"\x89PNG")
        assert figure.caption.endswith(".")
    assert ("Monday's midnight" in pictures["rhythm"].figure.caption) == (begins == "")
    assert "64 GPUs of box &amp; co" in pictures["demand"].figure.svg


@pytest.mark.parametrize(
    ("days", "unit"),
    [(0.5, "hour"), (10, "hour"), (100, "day"), (2000, "week"), (20_000, "ten weeks")],
)
def test_time_is_cut_into_as_many_steps_as_can_be_seen(days, unit):
    """Hours for a fortnight, days for a year, weeks beyond."""
    edges_s, found = time_bins(sample(days))
    assert found == unit
    assert 3 <= len(edges_s) <= MOST_BINS


def test_the_same_workload_gives_the_same_bytes():
    """Pages can be compared and kept."""
    one = Workload.of(submit_s=[5, 9], duration_s=[3, 4])
    assert drawn(one) == drawn(one)


def test_what_has_nothing_to_show_is_left_out():
    """No owners, no week, no time."""
    one = Workload.of(submit_s=[5], duration_s=[0])
    assert list(drawn(one)) == ["sizes", "durations"]
    short = sample(1, user=None)
    assert list(drawn(short)) == ["arrivals", "demand", "sizes", "durations"]


def test_captions_tell_the_numbers():
    """The busiest hour, the steps above capacity, the clip."""
    hours = np.repeat(np.arange(336), np.where(np.arange(336) % 168 == 38, 50, 1))
    duration = np.where(np.arange(len(hours)) % 2, 3600.0, np.arange(len(hours)) % 400 + 1.0)
    jobs = Workload.of(submit_s=hours * 3600.0, duration_s=duration, begins="2020-04-06T00:00:00")
    pictures = drawn(jobs, cluster=Cluster.pool(10))
    assert "Tue 14:00 with 50.0 jobs per hour" in pictures["rhythm"].figure.caption
    assert "More than there are in 2 of 336 hours." in pictures["demand"].figure.caption
    assert "The step at 60 min is a limit" in pictures["durations"].figure.caption
