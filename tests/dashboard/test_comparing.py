"""The compare view: schedules of the same jobs, their numbers and their pictures."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest

JOBS = ("--workload", "venus-like", "--jobs", "300")


@pytest.fixture(scope="module")
def two_runs(make_run):
    """Return the folders of two schedules of the same jobs."""
    return (
        make_run("simulate", "-s", "fifo+easy", *JOBS, "--out", "first"),
        make_run("simulate", "-s", "srpt+preemptive", *JOBS, "--out", "second"),
    )


@pytest.fixture(scope="module")
def comparison(make_run) -> Path:
    """Return the folder of a comparison over four workloads."""
    return make_run(
        "compare", "-s", "fifo,sjf+easy,fifo+easy", *JOBS, "--seeds", "4", "--out", "four"
    )


@pytest.fixture
def view(two_runs, dashboard, page):  # noqa: ARG001  (they must be there)
    """Return a page that shows the comparison of both."""
    page.goto(f"{dashboard.url}#/compare?runs=first,second")
    page.wait_for_selector(".gantts[aria-busy=false] canvas.gantt-plot")
    return page


def jobs_of(folder: Path, number: int = 0) -> pl.DataFrame:
    return pl.read_parquet(folder / "jobs" / f"{number}.parquet")


def test_numbers_are_those_of_the_runs_tables(asking, two_runs):
    """Means, counts and the jobs that moved most are those of the tables on disk."""
    found = asking.get("/api/compare", run=["first", "second"]).json()
    assert [side["name"] for side in found["sides"]] == ["fifo+easy", "srpt+preemptive"]
    first, second = (jobs_of(folder)["jct_s"].to_list() for folder in two_runs)
    jct = next(one for one in found["differences"] if one["metric"] == "mean_jct_s")
    assert jct["values"] == pytest.approx([statistics.fmean(first), statistics.fmean(second)])
    ratio = statistics.fmean(second) / statistics.fmean(first) - 1
    assert jct["sides"][1]["mean"] == pytest.approx(ratio)
    assert jct["sides"][1]["low"] < ratio < jct["sides"][1]["high"]
    change = [after - before for before, after in zip(first, second, strict=True)]
    best = min(range(len(change)), key=change.__getitem__)
    assert found["movers"][1]["gained"][0]["id"] == str(jobs_of(two_runs[0])["id"][best])
    assert found["movers"][1]["later"] == sum(each > 0 for each in change)
    median = next(x for x, y in zip(*found["cdfs"]["jct_s"][0].values(), strict=True) if y >= 0.5)
    assert median == pytest.approx(sorted(first)[149], rel=0.05)


def test_a_comparison_is_paired_over_its_workloads(asking, comparison):
    """The interval is the one that the comparison's own table has, here and in the report."""
    found = asking.get("/api/compare", run="four").json()
    assert found["units"] == "4 workloads"
    summary = json.loads((comparison / "summary.json").read_text())
    jct = next(one for one in found["differences"] if one["metric"] == "mean_jct_s")
    for side, place in zip(found["sides"], range(3), strict=True):
        rows = [row["mean_jct_s"] for row in summary if row["scheduler"] == side["name"]]
        assert len(rows) == 4
        assert jct["values"][place] == pytest.approx(statistics.fmean(rows))
    shown = jct["sides"][1]
    text = (comparison / "report.html").read_text().replace("−", "-")
    row = next(line for line in text.splitlines() if "<span>sjf+easy</span>" in line)
    told = re.findall(r"(-?[\d.]+) <span class=.interval.>\[(-?[\d.]+), (-?[\d.]+)\]", row)[1]
    mean, low, high = (float(number) / 100 for number in told)
    assert [shown["mean"], shown["low"], shown["high"]] == pytest.approx(
        [mean, low, high], abs=6e-4
    )
    other = asking.get("/api/compare", run="four", workload=3).json()
    assert [side["simulation"] for side in other["sides"]] == [3, 7, 11]
    assert other["differences"] == found["differences"]
    assert other["cdfs"] != found["cdfs"]


def test_the_baseline_can_be_another(asking, comparison):
    """Against itself there is no difference; signs turn."""
    assert comparison.is_dir()
    first, second = (
        asking.get("/api/compare", run="four", baseline=side).json()["differences"][0]["sides"]
        for side in (0, 1)
    )
    assert second[1] is None
    assert (1 + first[1]["mean"]) * (1 + second[0]["mean"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ({"run": ["first", "strange"]}, 409, "different workloads"),
        ({"run": "first"}, 409, "One schedule alone"),
        ({"run": ["nothing", "first"]}, 404, "no run named"),
        ({"run": ["../x", "first"]}, 400, "below the folder"),
        ({}, 400, "Name one comparison"),
        ({"run": "four", "workload": 9}, 404, "no workload 9"),
        ({"run": "four", "baseline": -1}, 400, "whole number"),
        ({"run": "four", "workload": "²"}, 400, "whole number"),
        ({"run": "four", "baseline": 7}, 404, "no schedule 7"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(
    asking, make_run, two_runs, comparison, query, status, told
):
    """Other workloads, too few schedules, names that are none."""
    assert two_runs[0].is_dir()
    assert comparison.is_dir()
    make_run("simulate", *JOBS, "--seed", "9", "--out", "strange")
    answered = asking.get("/api/compare", **query)
    assert answered.status_code == status
    assert told in answered.json()["error"]


def test_schedules_in_which_nothing_finished_can_be_compared(asking, make_run):
    """Nothing can be said of completion, and no more is."""
    for name in ("fifo", "lifo"):
        make_run("simulate", "-s", name, *JOBS, "--until-s", "1", "--out", f"cut-{name}")
    found = asking.get("/api/compare", run=["cut-fifo", "cut-lifo"]).json()
    assert found["differences"] == []
    assert found["shown"] == [0, 1]
    assert found["cdfs"]["jct_s"] == [{"x": [], "y": []}] * 2
    assert "did not finish under fifo" in found["notes"][0]


def test_an_answer_is_small_however_many_jobs_there_are(asking, make_run):
    """Twenty thousand jobs make an answer of less than 200 kB."""
    for name in ("fifo", "sjf"):
        make_run("simulate", "-s", name, "--jobs", "20000", "--out", f"large-{name}")
    answered = asking.get("/api/compare", run=["large-fifo", "large-sjf"])
    assert answered.json()["jobs"] == 20_000
    assert len(answered.content) < 200_000


def pictures(page) -> list[str]:
    script = "all => all.map(one => one.toDataURL())"
    return page.eval_on_selector_all(".gantts canvas.gantt-plot", script)


def test_schedules_move_together(view, shoot):
    """The wheel over one schedule zooms both; one button shows all of both again."""
    whole = pictures(view)
    assert len(whole) == 2
    assert whole[0] != whole[1]
    canvas = view.locator(".gantts canvas.gantt-plot").first
    canvas.scroll_into_view_if_needed()
    canvas.hover()
    view.mouse.wheel(0, -600)
    view.wait_for_timeout(200)
    closer = pictures(view)
    assert closer[0] != whole[0]
    assert closer[1] != whole[1]
    shoot(view, "compare-schedules")
    view.get_by_role("button", name="All of the time").click()
    view.wait_for_timeout(200)
    assert pictures(view) == whole


def test_charts_can_be_read_with_the_keyboard_alone(view):
    """Arrow keys lead from mark to mark, each tells its numbers."""
    view.locator(".chart [data-tip][tabindex='0']").nth(3).focus()
    tip = view.locator(".tip:not([hidden])")
    first = tip.inner_text()
    assert "of the jobs: at most" in first
    view.keyboard.press("ArrowRight")
    assert tip.inner_text() != first
    view.keyboard.press("Escape")
    assert tip.count() == 0


def test_a_job_that_gained_shows_its_life_under_both(view, two_runs, shoot):
    """A click on its name draws one row per scheduler, with the waits of the tables."""
    row = view.locator("button.job").first
    name = row.inner_text()
    row.click()
    life = view.locator(".movers + div .chart")
    life.wait_for()
    assert f"Job {name}" in life.inner_text()
    words = life.locator("svg").get_attribute("aria-label")
    assert words.startswith("fifo+easy: waited")
    assert "srpt+preemptive: waited" in words
    view.on("dialog", lambda _: pytest.fail("a dialog opened"))
    life.get_by_text("Numbers").click()
    life.locator("tbody tr").first.wait_for()
    starts = [float(cell) for cell in life.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    for start, folder in zip((starts[0], starts[1]), two_runs, strict=True):
        kept = jobs_of(folder).filter(pl.col("id").cast(pl.String) == name)["start_s"][0]
        assert start == pytest.approx(kept, rel=1e-5)
    shoot(view, "compare-life")


def saved(page, chart, label) -> bytes:
    with page.expect_download() as download:
        chart.get_by_role("button", name=f"as {label}").click()
    return Path(download.value.path()).read_bytes()


def test_every_figure_can_be_kept(view, asking):
    """As SVG with its styles inside, as PNG, and its numbers as CSV."""
    chart = view.locator(".chart", has_text="Job completion time").first
    svg = ET.fromstring(saved(view, chart, "SVG"))  # noqa: S314  (our own page wrote it)
    curve = next(each for each in svg.iter() if each.get("stroke") == "rgb(0, 114, 178)")
    assert curve.get("fill") == "none"
    assert not any(name in each.attrib for each in svg.iter() for name in ("class", "style"))
    assert any("fifo+easy" in (each.text or "") for each in svg.iter())
    assert saved(view, chart, "PNG").startswith(b"\x89PNG")
    rows = list(csv.reader(io.StringIO(saved(view, chart, "CSV").decode())))
    found = asking.get("/api/compare", run=["first", "second"]).json()["cdfs"]["jct_s"][0]
    kept = [(float(x), float(y)) for name, x, y in rows[1:] if name == "fifo+easy"]
    assert kept == list(zip(found["x"], found["y"], strict=True))
    for each in view.locator(".chart").all():
        assert each.get_by_role("button", name="Download").count() == 3


def test_another_baseline_and_fewer_schedulers(comparison, dashboard, page, shoot):
    """The address follows the choice; a scheduler taken out leaves every chart."""
    assert comparison.is_dir()
    page.goto(f"{dashboard.url}#/compare?runs=four")
    page.wait_for_selector(".chart")
    page.get_by_label("Compared with").select_option(label="sjf+easy")
    page.wait_for_selector("text=Relative to sjf+easy, paired over 4 workloads")
    assert "baseline=1" in page.url
    before = page.locator(".chart", has_text="fifo+easy").count()
    assert before > 5
    page.get_by_label("fifo+easy", exact=True).uncheck()
    assert page.locator(".chart svg text", has_text="fifo+easy").count() == 0
    shoot(page, "compare-four")


def test_different_workloads_are_refused_on_the_page(two_runs, make_run, dashboard, page):
    """The server's sentence is shown, and nothing else."""
    assert two_runs[0].is_dir()
    make_run("simulate", *JOBS, "--seed", "9", "--out", "strange")
    page.goto(f"{dashboard.url}#/compare?runs=first,strange")
    told = page.get_by_role("alert").inner_text()
    assert "only schedules of the same jobs can be compared" in told


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_view_fits_phones_and_dark_rooms(two_runs, dashboard, open_page, shoot, width, scheme):
    """Nothing is wider than the window, and every chart has words for those who cannot see it."""
    assert two_runs[0].is_dir()
    page = open_page(width=width, color_scheme=scheme)
    page.goto(f"{dashboard.url}#/compare?runs=first,second")
    page.wait_for_selector(".gantts[aria-busy=false] canvas.gantt-plot")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    labels = page.eval_on_selector_all(".chart .plot > svg", "all => all.map(a => a.ariaLabel)")
    assert len(labels) >= 7
    assert all(len(label) > 20 for label in labels)
    shoot(page, f"compare-{width}-{scheme}")


HOSTILE = "<img src=x onerror=alert(1)>"


def test_hostile_names_stay_names(dashboard, make_run, page):
    """Ids and tenants full of markup are shown as they are written."""
    path = dashboard.runs / "hostile.csv"
    lines = [f'"{HOSTILE}{row}",{row * 10},{100 + row},8,"{HOSTILE}"' for row in range(40)]
    path.write_text("\n".join(["id,submit_s,duration_s,gpus,tenant", *lines]) + "\n")
    common = ("--workload", "hostile.csv", "--cluster", "2x A100:8")
    make_run("simulate", "-s", "fifo", *common, "--out", "hostile-a")
    make_run("simulate", "-s", "lifo", *common, "--out", "hostile-b")
    page.on("dialog", lambda _: pytest.fail("a name ran as a script"))
    page.goto(f"{dashboard.url}#/compare?runs=hostile-a,hostile-b")
    job = page.locator("button.job").first
    assert job.inner_text().startswith(HOSTILE)
    job.click()
    page.wait_for_selector(".movers + div .chart")
    assert page.locator("img[src=x]").count() == 0


@pytest.fixture(scope="module")
def with_own_order(make_run, runs_folder) -> Path:
    """Return a comparison of two schedulers and of an order in a Python file."""
    code = "def oldest(jobs):\n    return jobs.submit_s\n"
    (runs_folder / "own_order.py").write_text(code)
    names = "fifo+easy,sjf+easy,own_order.py:oldest+skip"
    return make_run("compare", "-s", names, *JOBS, "--seeds", "1", "--out", "with-own")


def test_an_order_in_a_file_leaves_the_others_on_the_page(with_own_order, dashboard, page):
    """Its numbers are shown, its schedule is left out with a sentence, and nothing fails."""
    assert (with_own_order / "orders").is_dir()
    failed = []
    page.on("response", lambda reply: failed.append(reply.url) if reply.status >= 400 else None)
    page.goto(f"{dashboard.url}#/compare?run=with-own")
    page.wait_for_selector(".gantts[aria-busy=false] canvas.gantt-plot")
    assert page.locator(".gantts figure").count() == 2
    told = page.locator(".gantts + p").inner_text()
    assert told.count("own_order.py:oldest+skip is an order in a Python file") == 1
    assert page.locator(".chart svg text", has_text="+skip").count() > 3
    other = page.get_by_role("combobox", name="Against fifo+easy")
    other.select_option(label="own_order.py:oldest+skip")
    page.locator("button.job").first.click()
    page.locator(".movers + div .chart svg").wait_for()
    assert "order in a Python file" in page.locator(".movers + div").inner_text()
    assert not failed


def test_a_job_is_told_of_while_schedules_load(comparison, dashboard, page):
    """What the tables know stands there at once, with the way to its reasons."""
    assert comparison.is_dir()
    held = []

    def hold(route) -> None:
        held.append(route)

    page.route("**/api/schedule/**", hold)
    page.goto(f"{dashboard.url}#/compare?run=four")
    button = page.locator("button.job").first
    name = button.inner_text()
    button.click()
    card = page.locator(".movers + div")
    card.locator(".early").wait_for()
    assert f"Job {name}" in card.inner_text()
    assert "after submission under fifo+strict" in card.inner_text()
    assert card.locator("svg").count() == 0
    addresses = [link.get_attribute("href") for link in card.locator("a").all()]
    assert addresses == [f"#/schedule/four?simulation={n}&job={name}" for n in (0, 4)]
    assert held
    page.unroute("**/api/schedule/**")  # lets those go that were held
    card.locator(".chart svg").wait_for()
    card.locator("a").first.click()
    page.locator(".life h2", has_text=f"Job {name}").wait_for()


def test_schedules_are_drawn_as_they_come(comparison, dashboard, page):
    """The slowest keeps nobody waiting; what is zoomed stays so when it arrives."""
    assert comparison.is_dir()

    def hold(_route) -> None:
        """Answer later."""

    page.route("**/api/schedule/*?simulation=4", hold)
    page.goto(f"{dashboard.url}#/compare?run=four")
    page.wait_for_selector(".gantts canvas.gantt-plot")
    assert page.locator(".gantts figure").count() == 2
    assert "1 of 3 schedules are still being made" in page.locator(".gantts").inner_text()
    axis = page.locator(".gantts .axis-plot")
    is_another = "old => document.querySelector('.gantts .axis-plot').ariaLabel !== old"
    whole = axis.get_attribute("aria-label")
    page.locator(".gantts").get_by_role("button", name="Closer").click()
    page.wait_for_function(is_another, arg=whole)
    told = axis.get_attribute("aria-label")
    page.unroute("**/api/schedule/*?simulation=4")  # lets it go
    page.wait_for_selector(".gantts[aria-busy=false] canvas.gantt-plot")
    assert page.locator(".gantts figure").count() == 3
    page.wait_for_function(
        "told => document.querySelector('.gantts .axis-plot').ariaLabel === told", arg=told
    )
