"""The experiment view: maps, gaps, stars and bars of real experiments, and those under way."""

from __future__ import annotations

import csv
import io
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from yardmaster.dashboard.experiments import kind_of
from yardmaster.dashboard.refusals import Refusal

FIXED = '"srpt+skip", "edf+skip", "static-equal+skip"'
MATRIX = f"""
name = "little matrix"
schedulers = [{FIXED}]
seeds = 3
objectives = ["mean_jct_s", "mean_bounded_slowdown"]

[[regimes]]
family = "rlmetadqn"
where = {{ shape = ["base", "bursty"], intensity = ["low", "high"], gpus = [2, 4] }}
"""
ROBUST = f"""
name = "little robustness"
schedulers = [{FIXED}]
seeds = 2
objectives = ["mean_jct_s"]

[[regimes]]
family = "rlmetadqn"
where = {{ shape = ["base"], intensity = ["high"], gpus = [2] }}
perturbations = ["arrival-noise", "duration-distortion", "phase-shift", "capacity-dip"]
"""
LONG = MATRIX.replace("seeds = 3", "seeds = 40").replace("little matrix", "long matrix")


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> Path:
    """Return a folder with the experiments' documents."""
    folder = tmp_path_factory.mktemp("documents")
    for name, text in (("matrix", MATRIX), ("robust", ROBUST), ("long", LONG)):
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def matrix(make_run, documents) -> Path:
    """Return the folder of a small matrix."""
    words = ("experiment", "run", str(documents / "matrix.toml"), "--workers", "1")
    return make_run(*words, "--out", "deep/matrix")


@pytest.fixture(scope="module")
def robust(make_run, documents) -> Path:
    """Return the folder of a small study of robustness."""
    words = ("experiment", "run", str(documents / "robust.toml"), "--workers", "1")
    return make_run(*words, "--out", "robust")


@pytest.fixture(scope="module")
def ablation(matrix, dashboard) -> Path:
    """Return an experiment whose schedulers are variants of one, as `experiment ablation` has."""
    folder = dashboard.runs / "ablation"
    folder.mkdir()
    (folder / "experiment.toml").write_text((matrix / "experiment.toml").read_text())
    variant = {"srpt+skip": "full", "edf+skip": "no ages", "static-equal+skip": "no network"}
    table = pl.read_parquet(matrix / "results.parquet")
    table = table.with_columns(variant=table["scheduler"].replace_strict(variant))
    table.write_parquet(folder / "results.parquet")
    return folder


def by_hand(folder: Path, metric: str) -> dict[tuple[str, str], list[float]]:
    """Return (regime, scheduler) → the values of its seeds, from the table of results."""
    found = defaultdict(list)
    rows = pl.read_parquet(folder / "results.parquet").filter(pl.col("perturbation") == "none")
    for row in rows.iter_rows(named=True):
        found[row["regime"], row["scheduler"]].append(row[metric])
    return found


def names(found) -> list[str]:
    return [found["all_schedulers"][row]["name"] for row in found["schedulers"]]


def test_the_map_holds_means_and_gaps_of_every_regime(asking, matrix):
    """Each cell is the mean over seeds; each gap that over the least value of the same seed."""
    found = asking.get("/api/experiment", run="deep/matrix").json()
    values = by_hand(matrix, "mean_jct_s")
    assert len(found["map"]["regimes"]) == found["regimes"] == 8
    for row, regime in enumerate(found["map"]["regimes"]):
        best = [min(values[regime, name][seed] for name in names(found)) for seed in range(3)]
        for column, name in enumerate(names(found)):
            mean = statistics.fmean(values[regime, name])
            assert found["map"]["values"][row][column] == pytest.approx(mean, rel=1e-5)
            gap = statistics.fmean(
                value / least - 1 for value, least in zip(values[regime, name], best, strict=True)
            )
            assert found["map"]["gaps"][row][column] == pytest.approx(gap, rel=1e-5, abs=1e-9)


def test_filters_restrict_regimes_and_schedulers(asking, matrix):
    """Means are over the regimes left; the best in hindsight stays that of all schedulers."""
    everything = asking.get("/api/experiment", run="deep/matrix").json()
    found = asking.get("/api/experiment", **{
        "run": "deep/matrix", "label.gpus": "4", "label.shape": ["base", "bursty"],
        "scheduler": ["edf+skip", "static-equal+skip"], "metric": "mean_bounded_slowdown",
    }).json()  # fmt: skip
    assert found["regimes"] == 4
    assert all(name.endswith("-4") for name in found["map"]["regimes"])
    assert names(found) == ["edf+skip", "static-equal+skip"]
    values = by_hand(matrix, "mean_bounded_slowdown")
    for name, level in zip(names(found), found["levels"], strict=True):
        mean = statistics.fmean(
            value for regime in found["map"]["regimes"] for value in values[regime, name]
        )
        assert level["mean"] == pytest.approx(mean, rel=1e-5)
        assert level["low"] < mean < level["high"]
    assert min(min(row) for row in found["map"]["gaps"]) > 0
    labels = {label["name"]: label["values"] for label in everything["labels"]}
    assert labels["shape"] == ["base", "bursty"]
    assert labels["intensity"] == ["low", "high"]
    assert labels["gpus"] == ["2", "4"]


def test_the_star_holds_what_each_disturbance_costs(asking, robust):
    """The change of the mean over severities and seeds, against the clean regime."""
    star = asking.get("/api/experiment", run="robust").json()["robustness"]
    table = pl.read_parquet(robust / "results.parquet")
    assert sorted(star["perturbations"]) == sorted(set(table["perturbation"]) - {"none"})
    schedulers = table["scheduler"].unique(maintain_order=True).to_list()
    for name, changes in zip(schedulers, star["changes"], strict=True):
        mine = table.filter(pl.col("scheduler") == name)
        clean = mine.filter(pl.col("perturbation") == "none")["mean_jct_s"].mean()
        for kind, change in zip(star["perturbations"], changes, strict=True):
            disturbed = mine.filter(pl.col("perturbation") == kind)["mean_jct_s"].mean()
            assert change["mean"] == pytest.approx(disturbed / clean - 1, rel=1e-4, abs=1e-7)


def test_ablation_bars_hold_what_each_part_is_worth(asking, ablation):
    """The change of the mean against the variant that lacks nothing."""
    found = asking.get("/api/experiment", run="ablation").json()["ablation"]
    table = pl.read_parquet(ablation / "results.parquet")
    whole = table.filter(pl.col("variant") == "full")["mean_jct_s"].mean()
    measure = next(one for one in found["measures"] if one["name"] == "mean_jct_s")
    assert found["variants"] == ["no ages", "no network"]
    for name, change in zip(found["variants"], measure["changes"], strict=True):
        mean = table.filter(pl.col("variant") == name)["mean_jct_s"].mean()
        assert change["mean"] == pytest.approx(mean / whole - 1, rel=1e-4)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"metric": "mean_jtc_s"}, "Did you mean 'mean_jct_s'"),
        ({"scheduler": "sprt+skip"}, "Did you mean 'srpt+skip'"),
        ({"label.shpae": "base"}, "Did you mean 'shape'"),
        ({"label.gpus": "3"}, "No regime has all these labels"),
        ({"family": "other"}, "other"),
    ],
)
def test_unknown_names_are_told(asking, matrix, query, told):
    """With what may have been meant."""
    assert matrix.is_dir()
    answered = asking.get("/api/experiment", run="deep/matrix", **query)
    assert answered.status_code == 400
    assert told in answered.json()["error"]


def test_other_folders_are_no_experiments(tmp_path):
    """A folder without a document is refused."""
    with pytest.raises(Refusal, match="is not the folder of an experiment"):
        kind_of(tmp_path)


def test_links_out_of_a_studys_trainings_are_not_followed(asking, dashboard, tmp_path):
    """The state of each training is read, so a link in one's folder closes the whole study."""
    study = dashboard.runs / "linked-study"
    training = study / "trainings" / "full-0"
    training.mkdir(parents=True)
    (tmp_path / "secret.json").write_text("{}")
    (training / "run.json").symlink_to(tmp_path / "secret.json")
    for path in ("/api/experiment", "/api/experiment/state"):
        answer = asking.get(path, run="linked-study")
        assert answer.status_code == 403, path
        assert "trainings/full-0/run.json" in answer.json()["error"]
    shutil.rmtree(study)


def test_an_experiment_under_way_is_followed(asking, dashboard, documents, page, shoot):
    """Runs made, rate and time to go come as they happen; the page fills while it goes on."""
    words = ("experiment", "run", str(documents / "long.toml"), "--workers", "1", "--out", "long")
    command = [sys.executable, "-m", "yardmaster", *words, "--quiet"]
    with subprocess.Popen(command, cwd=dashboard.runs, stdout=subprocess.DEVNULL) as work:
        asking.wait((dashboard.runs / "long" / "runs.sqlite").is_file)
        states = []
        for state in asking.events("/api/experiment/events", run="long"):
            states.append(state)
            if len(states) == 3:
                page.goto(f"{dashboard.url}#/experiment/long")
            if state["is_complete"]:
                break
        assert work.wait(timeout=60) == 0
    assert states[-1]["done"] == states[-1]["total"] == 8 * 3 * 40
    running = [state for state in states if state["is_running"]]
    made = [state["done"] for state in running]
    assert made == sorted(made)
    assert len(set(made)) > 3
    assert any(state["rate"] and state["eta_s"] for state in running)
    page.wait_for_selector(".chart .cell")
    page.wait_for_selector(".progress", state="hidden")
    assert "960 runs" in page.locator(".lead").inner_text()
    shoot(page, "experiment-followed")


def test_a_study_that_only_trains_so_far_says_so(dashboard, page):
    """Trainings are counted, and figures are announced for later."""
    folder = dashboard.runs / "study"
    folder.mkdir()
    (folder / "trainings.toml").write_text("[a-0.train]\nseed = 0\n\n[a-1.train]\nseed = 1\n")
    page.goto(f"{dashboard.url}#/experiment/study")
    page.wait_for_selector("text=0 of 2 trainings")
    assert "its figures come with its results" in page.locator("main").inner_text()


def test_the_page_shows_the_map_and_follows_filters(matrix, dashboard, page, asking, shoot):
    """Cells are those of the answer; a filter changes address and map; the CSV has its numbers."""
    assert matrix.is_dir()
    page.goto(f"{dashboard.url}#/experiment/deep%2Fmatrix")
    page.wait_for_selector(".chart .cell")
    assert page.get_by_role("heading", level=1).inner_text() == "little matrix"
    assert page.locator(".chart .cell").count() == 24
    shoot(page, "experiment-matrix")
    page.locator("select[data-focus='label.gpus']").select_option("4")
    page.locator(".chart .cell").nth(12).wait_for(state="detached")
    assert page.locator(".chart .cell").count() == 12
    assert "label.gpus=4" in page.url
    page.locator("select[data-focus=colour]").select_option("value")
    page.wait_for_selector("text=Mean JCT in every regime")
    chart = page.locator(".chart").first
    with page.expect_download() as download:
        chart.get_by_role("button", name="as CSV").click()
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
    query = {"run": "deep/matrix", "label.gpus": "4"}
    found = asking.get("/api/experiment", **query).json()["map"]
    assert [float(row[2]) for row in rows[1:]] == [v for row in found["values"] for v in row]
    page.reload()
    page.wait_for_selector("text=Mean JCT in every regime")
    assert page.locator(".chart .cell").count() == 12


def test_cells_are_walked_with_arrow_keys(matrix, dashboard, page):
    """In a map, arrows go up, down, left and right; each cell tells what it is."""
    assert matrix.is_dir()
    page.goto(f"{dashboard.url}#/experiment/deep%2Fmatrix")
    page.wait_for_selector(".chart .cell")
    page.locator(".chart [data-row='0'][data-column='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    focused = page.locator(":focus")
    assert focused.get_attribute("data-row") == "2"
    assert focused.get_attribute("data-column") == "1"
    assert "edf+skip" in focused.get_attribute("aria-label")
    assert "edf+skip" in page.locator(".tip:not([hidden])").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_stars_and_bars_fit_the_window(
    robust, ablation, dashboard, open_page, shoot, width, scheme
):
    """On phones and screens, light and dark: nothing is wider than the window."""
    page = open_page(width=width, color_scheme=scheme)
    for folder, title in ((robust, "What each perturbation costs"), (ablation, "Without a part")):
        page.goto(f"{dashboard.url}#/experiment/{folder.name}")
        page.wait_for_selector(f".chart >> text={title}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        shoot(page, f"experiment-{folder.name}-{width}-{scheme}")
