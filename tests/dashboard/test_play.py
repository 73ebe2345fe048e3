"""Play: trying out schedulers from the page."""

from __future__ import annotations

import json
import re

import pytest

from yardmaster.dashboard.play import LIMITS, catalogue, checked
from yardmaster.dashboard.refusals import Refusal
from yardmaster.model.catalogue import cluster_names
from yardmaster.schedulers.language import parse_scheduler

WISH = {
    "cluster": "demo", "workload": "venus-like", "load": 0.9, "jobs": 120, "seed": 1, "seeds": 1,
    "schedulers": ["fifo+skip"],
}  # fmt: skip


def test_everything_that_is_offered_can_be_wished_for():
    """Every cluster, workload and scheduler of the page is accepted, and the language reads it."""
    choices = catalogue()
    assert {one["name"] for one in choices["clusters"]} == set(cluster_names())
    ready = [one["name"] for one in choices["ready"]]
    for name in [*choices["suggested"], *choices["more"], *ready]:
        assert checked(WISH | {"schedulers": [name]}).schedulers == (name,)
        parse_scheduler(name)
    for kind in ("cluster", "workload"):
        for one in choices[f"{kind}s"]:
            assert getattr(checked(WISH | {kind: one["name"]}), kind) == one["name"]


def test_a_wish_becomes_words_and_nothing_else(tmp_path):
    """One scheduler is simulated, several are compared; every option is one word."""
    one = checked(WISH).words(tmp_path / "a b")
    assert one[0] == "simulate"
    assert f"--out={tmp_path}/a b" in one
    several = checked(WISH | {"schedulers": ["fifo", "sjf+easy@pack~estimate"], "seeds": 3}).words(
        tmp_path
    )
    assert several[0] == "compare"
    assert "--schedulers=fifo,sjf+easy@pack~estimate" in several
    assert all(word.startswith("--") for word in several[1:])


@pytest.mark.parametrize(
    "name",
    ["os:system", "evil.py:order", "policy:/etc/passwd", "policy:../x", "meta:x/y",
     "bandit:linucb=a/b", "sjf --out=x", "sjf,fifo", "sjf\nfifo", "", "sjff", "sjf+eazy",
     "sjf@pakc", "-sjf", "--help"],
)  # fmt: skip
def test_names_that_are_not_listed_are_refused(name: str):
    """Files, modules, options and typing errors never reach a command."""
    with pytest.raises(Refusal):
        checked(WISH | {"schedulers": [name]})


@pytest.mark.parametrize(
    "change",
    [{"cluster": "/etc/x.toml"}, {"cluster": "8x A100:8"}, {"cluster": None},
     {"workload": "jobs.csv"}, {"workload": "venus-like:kinds=measured"}, {"load": 99},
     {"load": float("nan")}, {"load": True}, {"jobs": 0}, {"jobs": 10**9}, {"jobs": 1.5},
     {"jobs": "9"}, {"seed": -1}, {"seeds": 0}, {"schedulers": []}, {"schedulers": "fifo"},
     {"schedulers": [1]}, {"schedulers": [f"fifo@{i}" for i in range(20)]}, {"out": "elsewhere"}],
)  # fmt: skip
def test_wishes_beyond_the_lists_and_limits_are_refused(change):
    """Numbers out of bounds, other types and unknown keys are mistakes with a sentence."""
    with pytest.raises(Refusal, match=r"\w+"):
        checked(WISH | change)


def test_typing_errors_get_a_suggestion(asking):
    """The answer names the nearest that exists."""
    answer = asking.post("/api/play", WISH | {"schedulers": ["sjf+eazy"]})
    assert answer.status_code == 400
    assert "Did you mean 'easy'" in answer.json()["error"]
    assert LIMITS["jobs"][1] == 50_000


def test_a_comparison_is_made_in_the_folder_of_runs(asking, dashboard):
    """What was asked for runs as a command and ends as an ordinary run."""
    begun = asking.post("/api/play", WISH | {"schedulers": ["fifo+skip", "sjf+skip"], "seeds": 2})
    assert begun.status_code == 200, begun.text
    work = asking.work(begun.json()["number"])
    assert work["state"] == "finished", work["output"]
    folder = dashboard.runs / work["run"]
    rows = json.loads((folder / "summary.json").read_text())
    assert {row["scheduler"] for row in rows} == {"fifo+skip", "sjf+skip"}
    assert (folder / "report.html").is_file()
    found = asking.get("/api/play/result", run=work["run"]).json()["rows"]
    means = [
        sum(row["mean_jct_s"] for row in rows if row["scheduler"] == one["scheduler"]) / 2
        for one in found
    ]
    assert [one["mean_jct_s"] for one in found] == pytest.approx(means)
    assert means == sorted(means)
    assert asking.get("/api/play/result", run="../x").status_code == 400
    assert json.loads((folder / "meta.json").read_text())["command"].startswith(
        "yardmaster compare"
    )


def test_playing_in_the_page(page, dashboard, shoot):
    """Choosing, running with progress, and going on to the result, by keyboard where it matters."""
    page.goto(dashboard.url + "#/play")
    page.get_by_label("Jobs", exact=True).fill("200")
    page.get_by_label("Seeds", exact=True).fill("2")
    ticked = page.locator("input[name=scheduler]:checked")
    while ticked.count():
        ticked.first.uncheck()
    page.get_by_label("sjf+skip", exact=True).check()
    page.get_by_label("Others").fill("sjff")
    page.get_by_label("Others").press("Enter")
    page.get_by_role("alert").get_by_text("Did you mean").wait_for()
    page.get_by_label("Others").fill("saf+skip")
    before = page.locator("article.work").count()
    page.get_by_label("Others").press("Enter")
    page.locator("article.work").nth(before).wait_for()
    newest = page.locator("article.work").first
    newest.locator(".chip", has_text="finished").wait_for(timeout=40_000)
    newest.locator(".play-result tbody tr").nth(1).wait_for()
    shoot(page, "play-light")
    name = newest.get_attribute("aria-label")
    assert (dashboard.runs / name / "report.html").is_file()
    newest.get_by_role("link", name="Compare").click()
    page.wait_for_url(re.compile(re.escape(f"#/compare?run={name}")))
    page.go_back()
    assert page.get_by_label("Jobs", exact=True).input_value() == "200"


def test_cancelling_in_the_page(page, dashboard):
    """A long comparison is stopped with its button and leaves no run."""
    page.goto(dashboard.url + "#/play")
    page.get_by_label("Jobs", exact=True).fill("50000")
    page.get_by_label("Seeds", exact=True).fill("16")
    page.get_by_role("button", name="Run").click()
    name = page.locator("article.work[data-state=running]").get_attribute("aria-label")
    work = page.locator(f'article[aria-label="{name}"]')
    work.get_by_role("button", name="Cancel").click()
    work.locator(".chip", has_text="cancelled").wait_for()
    assert not (dashboard.runs / name).exists()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "dark")])
def test_play_fits_small_and_dark_windows(open_page, dashboard, shoot, width, scheme):
    """Nothing sticks out on a phone; every field has a name."""
    page = open_page(width=width, color_scheme=scheme)
    page.goto(dashboard.url + "#/play")
    page.get_by_role("button", name="Run").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for field in page.locator("main input, main select").all():
        assert field.evaluate("e => e.labels.length > 0 && e.labels[0].textContent.trim() !== ''")
    shoot(page, f"play-{scheme}-{width}")
