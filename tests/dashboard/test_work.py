"""Work that pages start: listing, following, cancelling."""

from __future__ import annotations

import pytest

SLOW = {
    "cluster": "demo",
    "workload": "lognormal",
    "jobs": 50_000,
    "load": 0.9,
    "seed": 3,
    "seeds": 16,
}


def test_work_is_followed_and_cancelled(asking):
    """A stream tells every change of a piece of work, from its begin to its being cancelled."""
    number = asking.post(
        "/api/play", SLOW | {"schedulers": ["fifo+strict", "srpt+preemptive"]}
    ).json()["number"]
    states = []
    for event in asking.events("/api/work/events"):
        (work,) = [one for one in event["works"] if one["number"] == number]
        if not states or states[-1] != work["state"]:
            states.append(work["state"])
        if work["state"] == "running" and len(states) == 1:
            assert asking.post("/api/work/cancel", {"number": number}).status_code == 200
        if work["state"] == "cancelled":
            break
    assert states == ["running", "cancelled"]


@pytest.mark.parametrize(
    "path", ["/api/work/cancel", "/api/play", "/api/training/stop", "/api/training/resume"]
)
def test_strangers_cannot_start_or_stop_anything(asking, path):
    """Without the token, from another origin, or by GET, nothing happens."""
    before = asking.get("/api/work").json()
    assert asking.post(path, {}, **{"X-Yardmaster-Token": "wrong"}).status_code == 403
    assert asking.post(path, {}, Origin="http://evil.example").status_code == 403
    assert asking.post(path, {}, Origin="null").status_code == 403
    assert asking.get(path).status_code in {404, 405}
    assert asking.get("/api/work").json() == before


@pytest.mark.parametrize("number", [999, "1", None, True, [1]])
def test_work_that_is_not_there_is_refused(asking, number):
    """A number nobody gave out, or no number at all, is answered with a sentence."""
    answer = asking.post("/api/work/cancel", {"number": number})
    assert answer.status_code == 404
    assert "no such piece" in answer.json()["error"]
