"""Five numbers that stand for the parts of a recipe that people decide."""

from __future__ import annotations

import pytest

from yardmaster.errors import InvalidWorkloadError
from yardmaster.workloads.habits import Habits
from yardmaster.workloads.recipes.recipe import Recipe
from yardmaster.workloads.synthetic import generate


def test_the_default_habits_are_the_default_parts_of_a_recipe():
    """Who gives no habits gets the documented ones."""
    recipe = Recipe()
    for name, part in Habits().parts().items():
        assert part == getattr(recipe, name)


def test_habits_reach_the_jobs():
    """Teams, people, classes and deadlines are as many as were asked for."""
    habits = Habits(tenants=2, users_per_tenant=1, priority_shares=(0.0, 1.0), deadline_share=1.0)
    jobs = generate("mm", jobs=200, seed=1, gpus=4, load=0.5, habits=habits)
    assert set(jobs.tenant.values()) == {"team-0", "team-1"}
    assert set(jobs.user.values()) == {"user-0", "user-1"}
    assert set(jobs.priority.tolist()) == {1.0}
    assert (jobs.deadline_s >= jobs.submit_s + 1.5 * jobs.estimate_s).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tenants", 0),
        ("users_per_tenant", 1.5),
        ("deadline_share", 1.2),
        ("deadline_share", float("nan")),
        ("estimate_sigma", -1),
        ("estimate_sigma", "much"),
        ("priority_shares", (0.5, 0.4)),
        ("priority_shares", (1.5, -0.5)),
    ],
)
def test_habits_that_make_no_sense_are_named(name, value):
    """A bad habit is refused with the name of the argument."""
    with pytest.raises(InvalidWorkloadError, match=name):
        Habits(**{name: value})
