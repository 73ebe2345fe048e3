"""Fidelity in tables, sentences and a page: what is said, and that it follows from the numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.fidelity.evidence import Cause, Owner
from yardmaster.experiments.fidelity.study import Fidelity, measure_fidelity
from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import Workload
from yardmaster.report.fidelity import (
    definitions,
    distance_table,
    fidelity_record,
    ranking_table,
    sides_table,
)
from yardmaster.report.fidelity_figures import fidelity_figures
from yardmaster.report.fidelity_page import NUMBERS, render_page, write_fidelity
from yardmaster.report.fidelity_words import (
    TITLES,
    causes_found,
    causes_not_found,
    caution,
    headline,
    moment,
    percent,
    sentence_of,
    span,
)
from yardmaster.report.renderers import to_markdown, to_terminal
from yardmaster.schedulers.simulation import simulate

EASY = "fifo+easy~estimate"
POOL = Cluster.pool(16)
SCHEDULERS = ("fifo+strict", "fifo+skip", EASY)


def made(scheduler: str = EASY, **changes: object) -> Workload:
    """Return 300 jobs with the waits a scheduler gives them as recorded ones."""
    rng = np.random.default_rng(0)
    run_s = np.ceil(np.exp(rng.normal(8.0, 1.0, 300)))
    gpus = rng.choice([1, 2, 4, 8], 300)
    span_s = float((gpus * run_s).sum()) / (16 * 0.7)
    jobs = Workload.of(
        name="made <b>", submit_s=np.sort(np.floor(rng.random(300) * span_s)), duration_s=run_s,
        gpus=gpus, estimate_s=2 * run_s, **changes,
    )  # fmt: skip
    schedule = simulate(jobs, POOL, scheduler)
    return replace(jobs, recorded_wait_s=schedule.start_s - jobs.submit_s)


@pytest.fixture(scope="module")
def apart() -> Fidelity:
    """A record of first come, first served, held against two others as well."""
    jobs = made("fifo+skip")
    return measure_fidelity(
        replace(jobs, recorded_wait_s=jobs.recorded_wait_s + 30.0), POOL, SCHEDULERS
    )


@pytest.fixture(scope="module")
def exact() -> Fidelity:
    """A record held against the scheduler that made it."""
    return measure_fidelity(made(), POOL, [EASY])


def test_the_ranking_lists_the_record_and_every_scheduler(apart):
    """The record stands on top, the closest next to it with a star, and halves are shown."""
    table = ranking_table(apart)
    names = [row[1].text for row in table.rows]
    assert names[0] == "recorded"
    assert names[1:] == [each.scheduler for each in apart.candidates]
    assert [row[0].text for row in table.rows] == ["", "★", "", ""]
    titles = [column.title for column in table.columns]
    place = titles.index("mean wait")
    mean = float(table.rows[1][place].text) - float(table.rows[0][place].text)
    delta = float(table.rows[1][titles.index("Δ mean")].text.replace("−", "-"))
    assert delta == pytest.approx(mean, abs=0.2)
    assert "apart, 2nd half" in titles
    assert to_terminal(table)
    assert to_markdown(table)


def test_one_scheduler_is_no_guess(exact):
    """Nothing was chosen: no star, no halves, no caution."""
    table = ranking_table(exact)
    assert table.columns[0].title == "scheduler"
    assert not any("half" in column.title for column in table.columns)
    assert caution(exact) == ""
    jobs = exact.closest.distance.jobs
    assert headline(exact) == f"{EASY} reproduces all {jobs} recorded waits exactly."
    assert 200 < jobs < 300  # the warm-up is a fifth of so short a trace


def test_sides_and_distances_show_both_spans(apart):
    """Without and with the warm-up, each in a unit of its own."""
    sides, distances = sides_table(apart), distance_table(apart)
    assert [row[0].text for row in sides.rows] == [
        "mean wait", "median wait", "p95 wait", "mean bounded slowdown", "utilisation",
    ]  # fmt: skip
    assert all(len(row) == 6 for row in sides.rows)
    first = distances.rows[0]
    assert first[0].text == "mean difference"
    assert first[1].text.startswith("−")  # the record has 30 s more
    assert any("cannot be put back" in note for note in distances.notes)


def test_the_headline_says_when_nothing_is_gained(apart):
    """From 90 % of the recorded wait on, the reader is told what that means."""
    closest = apart.closest
    far = replace(closest.distance, mean_apart_s=0.95 * closest.distance.recorded.mean_s)
    near = replace(closest.distance, mean_apart_s=0.2 * closest.distance.recorded.mean_s)
    further = replace(closest.distance, mean_apart_s=1.5 * closest.distance.recorded.mean_s)

    def told(distance):
        return headline(replace(apart, candidates=(replace(closest, distance=distance),)))

    assert "hardly closer than if one had said that nobody waits" in told(far)
    assert "further than if one had said" in told(further)
    assert "nobody" not in told(near)
    assert "20 % of the recorded mean" in told(near)


def test_the_caution_names_the_honest_choice(apart):
    """The scheduler chosen on the first half, and what it is worth on the second."""
    first, second, third = apart.candidates
    split = replace(
        apart,
        candidates=(replace(first, halves=(0.4, 0.3)), replace(second, halves=(0.2, 0.7)), third),
    )
    text = caution(split)
    assert "a guess, chosen on the data it is judged by" in text
    assert f"it is {second.scheduler}, which on the second half is 70 % apart" in text
    assert f"closest there: {first.scheduler}, 30 %" in text


def test_ties_are_not_hidden(apart):
    """Where others are exactly as close, the choice is arbitrary, and that is said."""
    first, second, third = apart.candidates
    tied = replace(apart, candidates=(first, replace(second, distance=first.distance), third))
    assert apart.ties == 0
    assert "exactly as close" not in caution(apart)
    assert tied.ties == 1
    assert "In all, another is exactly as close" in caution(tied)


def test_causes_are_said_in_order_of_what_they_explain(apart):
    """Found ones with their sentences, all others named as looked for."""
    told = causes_found(apart)
    latency = next(text for title, text in told if title == TITLES["latency"])
    assert "waited 30 s all the same" in latency
    assert "100 % of the difference" in latency
    found = {title for title, _ in told}
    silent = causes_not_found(apart)
    for title in TITLES.values():
        assert (title in found) != (title[0].lower() + title[1:] in silent)


@pytest.mark.parametrize(
    ("cause", "parts"),
    [
        (
            Cause("room", is_found=True, share=0.5, numbers={
                "jobs": 1200, "waited_share": 0.4, "simulated_waited_share": 0.1,
                "room_for_all_share": 0.2, "extra_room_for_all_share": 0.2}),
            ["1,200 jobs", "40 %", "(10 % under", "20 % fell into times", "limits on users",
             "up to 50 %"],
        ),
        (
            Cause("room", is_found=True, share=0.5, numbers={
                "jobs": 3, "waited_share": 0.4, "simulated_waited_share": 0.1,
                "room_for_all_share": 0.0, "extra_room_for_all_share": 0.0}),
            ["Only 0 %", "a stricter queue than"],
        ),
        (
            Cause("caps", is_found=True, share=0.05, owners=tuple(
                Owner("user", f"u{number}", "GPUs", 16.0, 40, 7200.0) for number in range(7))),
            ["7 users", "u0 (at most 16 GPUs, 40 jobs, 2 h)", "and 2 more", "5.0 %"],
        ),
        (
            Cause("drains", is_found=True, share=0.1, numbers={"drained_s": 93_600.0},
                  periods_s=((0.0, 7200.0), (86_400.0, 172_800.0))),
            ["2 times", "26 h in all", "The longest: day 1.0 (24 h), day 0.0 (2 h)"],
        ),
        (
            Cause("order", is_found=True, share=nan, numbers={
                "passing_share": 0.1, "simulated_passing_share": 0.4, "jumping_share": 0.0,
                "simulated_jumping_share": 0.0}),
            ["10 % of the recorded starts", "closer to the order of submission"],
        ),
        (
            Cause("size", is_found=True, share=nan, numbers={
                "is_too_small": 0.0, "is_too_large": 1.0, "too_large_jobs": 2.0, "gpus": 64.0,
                "highest_while_waiting_gpus": 52.0}),
            ["52 of the cluster's 64 GPUs", "2 jobs ask for more GPUs"],
        ),
        (
            Cause("warm-up", is_found=True, share=0.3, numbers={
                "jobs_share": 0.05, "mean_difference_s": -7200.0,
                "later_mean_difference_s": 600.0, "warm_up_ends_s": 1e6}),
            ["2 h shorter on average there", "10 min longer on average later"],
        ),
    ],
)  # fmt: skip
def test_sentences_hold_the_numbers(apart, cause, parts):
    """Every number that was measured is in the sentence, in words."""
    text = sentence_of(cause, apart)
    for part in parts:
        assert part in text.replace("\n", " "), text


def test_moments_are_dates_where_they_are_known(apart):
    """A date if the trace says when it begins, a day of its clock otherwise."""
    assert moment(apart, 129_600.0) == "day 1.5"
    dated = replace(apart, workload=replace(apart.workload, begins="1996-09-23T00:00:00"))
    assert moment(dated, 129_600.0) == "1996-09-24 12:00"


def test_small_shares_are_not_nothing():
    """Percent with a decimal below ten, and a word for what rounds to nothing."""
    assert percent(0.523) == "52 %"
    assert percent(0.0451) == "4.5 %"
    assert percent(0.00001) == "under 0.1 %"
    assert percent(0.0) == "0 %"
    assert span(5400.0) == "90 min"


def test_the_record_for_programs_is_plain_json(apart, exact):
    """Every candidate, measure and cause, and no NaN."""
    for found in (apart, exact):
        record = fidelity_record(found)
        text = json.dumps(record["rows"], allow_nan=False)
        assert json.loads(text)[0]["scheduler"] == record["closest"]
        assert [cause["name"] for cause in record["causes"]] == [c.name for c in found.causes]
    assert fidelity_record(exact)["rows"][0]["apart"] == 0
    assert fidelity_record(apart)["rows"][0]["recorded_mean_s"] > 0


def test_figures_are_drawn_for_exact_and_for_idle_records(apart, exact):
    """Four pictures with words for those who cannot see them; constant data is no problem."""
    idle = replace(made(), recorded_wait_s=np.zeros(300))
    light = measure_fidelity(idle, Cluster.pool(4000), ["fifo+skip"])
    for found in (apart, exact, light):
        figures = fidelity_figures(found)
        assert [figure.name for figure in figures] == [
            "wait-cdf", "job-by-job", "waits-over-time", "use-over-time",
        ]  # fmt: skip
        assert all(figure.svg.startswith("<svg") and figure.alt for figure in figures)


def test_the_page_stands_alone_and_escapes_names(apart):
    """No script, no address, no tag from a name; the same input gives the same bytes."""
    figures = fidelity_figures(apart)
    text = render_page(apart, figures, command="yardmaster workload fidelity x.swf")
    assert "made &lt;b&gt;" in text
    assert "<b>" not in text
    assert "<script" not in text
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert text == render_page(
        apart, fidelity_figures(apart), command="yardmaster workload fidelity x.swf"
    )
    for name, _ in definitions(apart):
        assert name in text
    assert headline(apart) in text


def test_the_folder_appears_whole_and_is_not_replaced_unasked(apart, tmp_path: Path):
    """Page, figures and numbers; an earlier result only goes with --overwrite, others never."""
    folder = tmp_path / "out"
    write_fidelity(apart, folder)
    assert {path.name for path in folder.iterdir()} == {"report.html", "figures", NUMBERS}
    assert json.loads((folder / NUMBERS).read_text())["closest"] == apart.closest.scheduler
    with pytest.raises(YardmasterError, match="--overwrite"):
        write_fidelity(apart, folder)
    write_fidelity(apart, folder, overwrite=True)
    other = tmp_path / "mine"
    other.mkdir()
    with pytest.raises(YardmasterError, match="not the result"):
        write_fidelity(apart, other, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"out", "mine"}
