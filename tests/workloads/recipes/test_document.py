"""Recipes as people write them: in one line, in tables, with all mistakes listed at once."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidConfigError, InvalidWorkloadError
from yardmaster.workloads.demands import Demands
from yardmaster.workloads.recipes.arrivals import Alternating, MarkovModulated
from yardmaster.workloads.recipes.distributions import LogNormal, Normal
from yardmaster.workloads.recipes.document import (
    find_recipe,
    read_recipe,
    recipe_from,
    to_toml,
)
from yardmaster.workloads.recipes.estimates import NoEstimates
from yardmaster.workloads.recipes.parameters import parameters_of
from yardmaster.workloads.recipes.presets import PRESETS
from yardmaster.workloads.recipes.recipe import PROCESSES, Recipe
from yardmaster.workloads.synthetic import generate

HOURS = "/".join(str(1 + hour % 5) for hour in range(24))
LINES = {
    "arrivals": [
        "poisson",
        "alternating:busy=5,quiet=0.5,every_s=60,held=yes",
        "sine:period_s=3600,depth=0.3,shift_s=-20",
        f"daily:hours={HOURS}",
        f"weekly:hours={HOURS},weekdays=1/1/1/1/1/0.5/0.4,bursts=0.7",
        "markov:rates=5/1,sojourns_s=600/3000",
        "bursts:centres=3,share=0.5,width=0.01",
        "at-once",
        "calibrated:trace=philly-like",
    ],
    "sizes": [
        "fixed:value=0.5",
        "uniform:low=1,high=8",
        "log-uniform:low=1,high=64",
        "choice:values=0.25/1/2,weights=1/2/3",
        "lognormal:median=2,sigma=1,high=64",
        "exponential:mean=3",
        "normal:mean=4,std=2",
        "pareto:alpha=1.5,low=1,high=64",
        "heavy-tailed:longest=64",
        "quantiles:probabilities=0.1/0.9,values=1/8",
        "powers-of-two:mean=5.68,largest=1024",
        "calibrated:trace=openb-like",
        "follows-duration:longest_s=5000,largest=8",
    ],
    "durations": [
        "fixed:value=60",
        "uniform:low=30,high=900",
        "log-uniform:low=10,high=1000",
        "choice:values=60/600",
        "lognormal:median=600,sigma=1.7,low=30,high=172800",
        "exponential:mean=3600",
        "normal:mean=3000,std=2500,low=1",
        "pareto:alpha=1.1,low=10,high=100000",
        "heavy-tailed:longest=10000,short_share=0.85",
        "quantiles:probabilities=0.25/0.5/0.75,values=10/100/1000",
    ],
    "priorities": [
        "fixed:value=1",
        "classes:shares=0.5/0.5",
        "choice:values=0.5/1/2.5/5",
        "uniform:low=0,high=3",
        "follows-duration:correlation=positive,longest_s=5000",
    ],
    "estimates": ["round-limits:sigma=0", "exact", "noisy:sigma=0.5,bias=2", "factor:factor=3"],
    "deadlines": ["slack:low=1.2,high=2,follows=duration", "none"],
    "tenants": ["teams:tenants=2,users_per_tenant=3", "users:names=ann/bob,weights=1/3", "none"],
}


@settings(max_examples=60, deadline=None)
@given(parts=st.fixed_dictionaries({part: st.sampled_from(lines) for part, lines in LINES.items()}))
def test_a_recipe_survives_being_written_and_read(parts):
    """Options → recipe → TOML → recipe is the same recipe, and gives the same jobs."""
    recipe = recipe_from({"jobs": 20, "rate_per_h": 600.0, "name": "mine"}, "here", parts)
    again = recipe_from(tomllib.loads(to_toml(recipe)), "there")
    assert again == recipe
    one, other = (generate(each, seed=1) for each in (recipe, again))
    assert one.fingerprint() == other.fingerprint()


@pytest.mark.parametrize("part", PROCESSES)
def test_every_process_is_written_above(part):
    """A new process must be put into the lists above; those that read files are tried elsewhere."""
    tried = {line.partition(":")[0] for line in LINES[part]}
    elsewhere = {"arrivals": {"replayed"}, "durations": {"calibrated"}, "estimates": {"none"}}
    assert tried | elsewhere.get(part, set()) == set(PROCESSES[part])


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_survive_being_written_and_read(preset):
    """The recipe of a preset says all there is to it."""
    recipe = PRESETS[preset].recipe("elastic=0.5")
    assert recipe_from(tomllib.loads(to_toml(recipe)), "there") == recipe


def test_a_table_and_a_line_say_the_same():
    """A part may be written in one line or as a table."""
    line = recipe_from({"arrivals": "markov:rates=5/1,sojourns_s=600/3000"}, "here")
    table = {"process": "markov", "rates": [5, 1], "sojourns_s": [600, 3000]}
    assert recipe_from({"arrivals": table}, "here") == line
    assert line.arrivals == MarkovModulated(rates=(5, 1), sojourns_s=(600, 3000))


def test_options_replace_parts_of_a_file(tmp_path: Path):
    """Part by part: what an option names is the option's, everything else the file's."""
    path = tmp_path / "mine.toml"
    path.write_text(
        'preset = "drl-scheduler"\njobs = 50\n[arrivals]\nprocess = "alternating"\nbusy = 7\n'
    )
    recipe = read_recipe(path, {"durations": "lognormal:median=60,sigma=1"})
    assert recipe.name == "mine"
    assert recipe.arrivals == Alternating(busy=7)
    assert recipe.durations == LogNormal(median=60, sigma=1)
    assert recipe.priorities == PRESETS["drl-scheduler"].recipe().priorities
    assert read_recipe(path).durations == Normal(mean=3000, std=2500, low=1)


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        ({"preset": "rlmetadqn"}, {"jobs": 9}, {"jobs": 9, "until_s": None, "rate_per_h": 120}),
        ({"preset": "rlmetadqn"}, {"load": 0.5}, {"load": 0.5, "until_s": 3600, "rate_per_h": 120}),
        ({"preset": "rlmetadqn"}, {"load": 0.5, "jobs": 9}, {"rate_per_h": None, "until_s": None}),
        ({"preset": "rlmetadqn", "jobs": 9}, {"load": 0.5}, {"rate_per_h": None, "jobs": 9}),
        ({"preset": "rlmetadqn", "span_s": 60.0}, {"jobs": 5}, {"rate_per_h": None, "span_s": 60}),
        ({"preset": "gpu-optimizer"}, {"rate_per_h": 60}, {"span_s": None, "jobs": 400}),
        ({"preset": "gpu-optimizer"}, {"load": 0.8}, {"span_s": None, "load": 0.8}),
        ({"jobs": 5, "load": 0.9}, {"rate_per_h": 60}, {"load": None, "rate_per_h": 60, "jobs": 5}),
        ({"rate_per_h": 9, "until_s": 60.0}, {"jobs": 5}, {"until_s": None, "rate_per_h": 9}),
        ({"rate_per_h": 9, "until_s": 60.0}, {"load": 1}, {"until_s": 60, "rate_per_h": 9}),
    ],
)
def test_a_new_pace_takes_the_place_of_the_old(data, options, expected):
    """Number and pace given last win; a load keeps the rate that says how many jobs there are."""
    recipe = recipe_from(data, "here", options)
    assert {key: getattr(recipe, key) for key in expected} == expected


def test_all_mistakes_of_a_file_are_listed(tmp_path: Path):
    """Each with its path, and with what was perhaps meant."""
    path = tmp_path / "bad.toml"
    path.write_text(
        """
preset = "rlmetadq"
jbos = 3
span_s = "x"
durations = 5
[arrivals]
process = "weekly"
hours = [1, 2]
weekdays = [1, 1, 1, 1, 1, 1, -1]
[sizes]
proces = "fixed"
[priorities]
process = "clases"
[deadlines]
process = "slack"
lwo = 1
follows = "estimat"
[demands]
elastic = 2
kinds = "mesured"
"""
    )
    with pytest.raises(InvalidConfigError) as caught:
        read_recipe(path, {"tenants": "users", "estimates": "factor:factor=abc", "jobs": -1})
    found = caught.value.mistakes
    for begin, end in (
        ("preset: Unknown workload 'rlmetadq'", "'rlmetadqn'?"),
        ("jbos: unknown key", "'jobs'?"),
        ("span_s: must be a number, got 'x'", ""),
        ("durations: must be a table or a text, got 5", ""),
        ("arrivals.hours: must be a list of 24 numbers", "got 2"),
        ("arrivals.weekdays[6]: must be a number of at least 0, got -1", ""),
        ("sizes.process: is required", "'proces'"),
        ("priorities.process: Unknown process of priorities 'clases'", "'classes'?"),
        ("deadlines.lwo: Unknown key 'lwo'", "'low'?"),
        ("deadlines.follows: Unknown value for follows 'estimat'", "'estimate'?"),
        ("demands.elastic: must be from 0 to 1, got 2", ""),
        ("demands.kinds: Unknown value for kinds 'mesured'", "'measured'?"),
        ("--tenants.names: is required: the people", ""),
        ("--estimates.factor: must be a number > 0", "got 'abc'"),
        ("--jobs: must be at least 1, got -1", ""),
    ):
        assert any(line.startswith(begin) and end in line for line in found), (begin, found)
    assert len(found) == 15


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"span_s": 5.0, "load": 1.0}, "span_s cannot be given together with load or rate_per_h"),
        ({"rate_per_h": 5.0, "load": 1.0}, "load and rate_per_h cannot be given together"),
        ({"until_s": 5.0, "jobs": 3, "rate_per_h": 1.0}, "until_s cannot be given .* jobs"),
        ({"until_s": 5.0}, "until_s needs rate_per_h"),
        (
            {"until_s": 5.0, "rate_per_h": 9.0, "arrivals": {"process": "at-once"}},
            "until_s needs arrivals with a rate; at-once has none",
        ),
        ({"until_s": 5.0, "rate_per_h": 1.0, "arrivals": "bursts"}, "bursts has none"),
        ({"estimates": "none"}, "deadlines follow estimates, but there are none"),
        (
            {"sizes": "follows-duration:longest_s=9", "durations": "calibrated:trace=venus-like"},
            "sizes follow durations and durations follow sizes",
        ),
        ({"sizes": "choice:values=1/2.5"}, "whole GPUs, or a part of one from 0.001, got 2.5"),
        ({"sizes": "fixed:value=0.0001"}, "got 0.0001"),
    ],
)
def test_parts_that_do_not_go_together(data, message):
    """A contradiction is refused in words."""
    with pytest.raises(InvalidConfigError, match=message):
        recipe_from(data, "here")


def test_several_contradictions_are_all_listed():
    """Also those that need the whole recipe."""
    with pytest.raises(InvalidConfigError) as caught:
        recipe_from({"span_s": 5.0, "load": 1.0, "estimates": "none"}, "here")
    assert len(caught.value.mistakes) == 2


def test_in_python_contradictions_are_refused_too():
    """Whoever builds a recipe in Python hears the same."""
    with pytest.raises(InvalidWorkloadError, match="deadlines follow estimates"):
        Recipe(estimates=NoEstimates())
    with pytest.raises(InvalidConfigError, match="2 mistakes"):
        replace(Recipe(), load=-1.0, jobs=0)


NONSENSE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9),
        st.sampled_from(["poisson", "weekly:hours=1", "uniform:low=1,high=8", "none", "slack:"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["process", "low", "high", "values", "rates", "hours", "names", ""]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*PROCESSES, "demands", "preset", "jobs", "load", "name", "notes", "x"]),
        NONSENSE,
        min_size=1,
        max_size=4,
    )
)
def test_nonsense_is_refused_in_words(data):
    """Whatever a file holds: a recipe, or a list of mistakes; never anything else."""
    with suppress(InvalidConfigError):
        assert isinstance(recipe_from(data, "here"), Recipe)


def test_a_missing_file_is_named(tmp_path: Path):
    """The error names the path and a file that has nearly that name."""
    (tmp_path / "mine.toml").write_text("jobs = 3")
    with pytest.raises(InvalidWorkloadError, match=r"No such file.*Did you mean 'mine\.toml'"):
        find_recipe(str(tmp_path / "mien.toml"))
    (tmp_path / "mine.toml").write_text("jobs = = 3")
    with pytest.raises(InvalidConfigError, match="is not valid TOML"):
        find_recipe(tmp_path / "mine.toml")


def test_demands_in_a_file_and_in_one_line():
    """Demands have no process, only keys."""
    wanted = Demands(kinds="measured", cores=4)
    assert recipe_from({"demands": {"kinds": "measured", "cores": 4}}, "here").demands == wanted
    assert recipe_from({"demands": "kinds=measured,cores=4"}, "here").demands == wanted
    for bad in (5, "elastic"):
        with pytest.raises(InvalidConfigError, match="demands: "):
            recipe_from({"demands": bad}, "here")


def test_every_parameter_says_what_it_means():
    """Documents and messages rely on kind and meaning of every parameter."""
    parts = [process for each in PROCESSES.values() for process in each.values()]
    for part in (Recipe, Demands, *parts):
        for name, parameter in parameters_of(part).items():
            assert parameter.meaning, (part, name)
            assert parameter.kind, (part, name)


def test_every_process_and_parameter_is_documented():
    """The page about generators has every name that can be written."""
    page = Path(__file__).resolve().parents[3] / "docs/generators.md"
    text = page.read_text(encoding="utf-8")
    missing = [
        f"{part}: {name}"
        for part, processes in PROCESSES.items()
        for process in processes.values()
        for name in (process.process, *parameters_of(process))
        if f"`{name}`" not in text
    ]
    assert not missing
    assert all(f"`{preset}`" in text for preset in PRESETS)
