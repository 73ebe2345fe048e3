"""The policy service's schema: what may be asked, and what is answered."""

from __future__ import annotations

import copy
import json

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decider
from yardmaster.live.schema import answer, read_state

ASKED = {
    "version": 1,
    "time_s": 5000,
    "nodes": [{"name": "n1", "gpus": 8, "gpu_type": "A100"}, {"name": "n2", "gpus": 4}],
    "jobs": [
        {"id": "a", "submit_s": 4000, "gpus": 6, "estimate_s": 600},
        {"id": "b", "submit_s": 100, "gpus": 4, "estimate_s": 9000, "start_s": 200,
         "nodes": [["n1", 4]]},
        {"id": "c", "submit_s": 4500, "gpus": 1, "estimate_s": 9, "user": "ann"},
        {"id": "d", "submit_s": 1, "gpus": 1, "estimate_s": 1, "held": True},
    ],
}  # fmt: skip


def test_a_question_becomes_a_state_and_an_answer():
    """Names come back as they were given; held and running jobs are not ranked."""
    state = read_state(ASKED)
    assert state.free_gpus.tolist() == [4, 4]
    found = json.loads(json.dumps(answer(state, Decider("sjf+easy").decide(state))))
    assert [one["id"] for one in found["order"]] == ["c", "a"]
    assert [one["id"] for one in found["starts"]] == ["c"]
    assert found["starts"][0]["nodes"][0][0] in {"n1", "n2"}
    assert all(one["why"] for one in found["order"])


def changed(path, value):
    asked = copy.deepcopy(ASKED)
    place = asked
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return asked


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ([], "JSON object"),
        (changed(["version"], 2), "version must be 1"),
        (changed(["jobbs"], []), "Did you mean 'jobs'"),
        (changed(["jobs"], [{}] * 50_001), "at most 50,000"),
        (changed(["nodes"], []), "at least one"),
        (changed(["nodes", 0, "gpus"], -1), "up to 1,024"),
        (changed(["nodes", 1, "name"], "n1"), "same name"),
        (changed(["nodes", 0, "gpu_type"], "A1000"), "Unknown GPU type"),
        (changed(["jobs", 0, "gpus"], "6"), r"jobs\[0\].gpus must be a number"),
        (changed(["jobs", 0, "gpus"], 0), "gpus"),
        (changed(["jobs", 0, "estimate_s"], None), r"jobs\[0\] needs"),
        (changed(["jobs", 0, "submit"], 4), "Did you mean 'submit_s'"),
        (changed(["jobs", 1, "nodes"], [["n9", 1]]), "pairs"),
        (changed(["jobs", 0, "nodes"], [["n1", 1]]), "no start_s"),
        (changed(["jobs", 1, "start_s"], 6000), "after now"),
        (changed(["time_s"], None), "time_s is needed"),
        (changed(["jobs", 0, "user"], 7), "must be a text"),
        (changed(["jobs", 0, "held"], "yes"), r"jobs\[0\].held must be true or false"),
        (changed(["jobs", 0, "held"], 1), r"jobs\[0\].held must be true or false"),
        (changed(["jobs", 1, "nodes"], 5), "pairs"),
        (changed(["jobs", 1, "nodes"], {"n1": 4}), "pairs"),
        (changed(["jobs", 1, "nodes"], [[["n1"], 4]]), "pairs"),
        (changed(["jobs", 1, "nodes"], [["n1", True]]), "pairs"),
        (changed(["jobs", 1, "nodes"], [["n1", 900]]), "jobs hold 900 GPUs of its 8"),
        (changed(["jobs", 0, "submit_s"], 10**400), "submit_s must be a number between"),
        (changed(["jobs", 0, "submit_s"], float("nan")), "submit_s must be a number between"),
        (changed(["jobs", 0, "submit_s"], 5001), r"jobs\[0\] is submitted after now"),
        (changed(["jobs", 0, "id"], "\ud800"), r"jobs\[0\].id is no text"),
        (changed(["jobs", 0, "id"], ["a"]), "a text or a whole number"),
        (changed(["jobs", 0, "user"], "\udfff"), r"jobs\[0\].user is no text"),
        (changed(["nodes", 0, "name"], "n\0"), r"nodes\[0\].name is no text"),
    ],
)
def test_mistakes_are_named(asked, sentence):
    """Everything that is wrong is refused with its place."""
    with pytest.raises(YardmasterError, match=sentence):
        read_state(asked)
