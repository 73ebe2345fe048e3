"""The policy service's schema, version 1: a state in, ranked jobs out; plain JSON both ways.

Asked (`POST /v1/rank`):

```json
{"version": 1, "time_s": 5000,
 "nodes": [{"name": "n1", "gpus": 8, "gpu_type": "A100", "blocked": 0}],
 "jobs": [{"id": "a", "submit_s": 4000, "gpus": 2, "estimate_s": 600},
          {"id": "b", "submit_s": 100, "gpus": 4, "estimate_s": 9000, "start_s": 200,
           "nodes": [["n1", 4]]}]}
```

A job with `start_s` runs, one without waits; `held` keeps a waiting one out. Further columns of a
job: `priority`, `deadline_s`, `user`, `tenant`, `kind`, `gpu_types`, `cpus`, `memory_gib`.

Answered: `scheduler`, `chosen` (a chooser's pick), `digest` of the state, `took_ms`, `order` =
[{`id`, `score`, `why`}] of all waiting jobs that are not held, first to start first (`score` null:
not looked at), and `starts` = [{`id`, `nodes` = [[name, gpus], …]}] of the jobs to start now.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yardmaster.errors import YardmasterError
from yardmaster.live.decision import Decision
from yardmaster.live.state import State
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.columns import LABEL_COLUMNS, IntArray, Labels
from yardmaster.model.gpus import gpu_type
from yardmaster.names import did_you_mean

VERSION = 1
MOST_JOBS = 50_000
MOST_NODES = 10_000
LARGEST = 1e15
"""Of any number: whole seconds up to it are told apart."""
MOST_WHY = 1_000
"""Jobs of the order, from its head, that come with a reason."""
_NUMBERS = {"submit_s": math.nan, "estimate_s": math.nan, "gpus": 1.0, "priority": 0.0,
            "deadline_s": math.nan, "cpus": math.nan, "memory_gib": math.nan}  # fmt: skip
_LABELS = tuple(name for name in LABEL_COLUMNS if name != "status")
_JOB = frozenset({"id", "start_s", "nodes", "held", *_NUMBERS, *_LABELS})
_NODE = frozenset({"name", "gpus", "gpu_type", "blocked"})


def read_state(asked: object) -> State:
    """Check what was asked and return it as a state.

    Raises:
        YardmasterError: naming the place of the first mistake.
    """
    if not isinstance(asked, dict):
        raise YardmasterError("The body must be a JSON object.")
    _only(asked, frozenset({"version", "time_s", "nodes", "jobs"}), "the body")
    if asked.get("version") != VERSION:
        raise YardmasterError(f"version must be {VERSION}, got {asked.get('version')!r}.")
    nodes = _list(asked, "nodes", MOST_NODES)
    jobs = _list(asked, "jobs", MOST_JOBS)
    if not nodes:
        raise YardmasterError("nodes: at least one is needed.")
    cluster, names, blocked = _cluster(nodes)
    for place, job in enumerate(jobs):
        if not isinstance(job, dict) or "id" not in job:
            raise YardmasterError(f"jobs[{place}] must be an object with an id.")
        _only(job, _JOB, f"jobs[{place}]")
    columns: dict[str, Any] = {
        name: np.array([_number(job, name, place, missing) for place, job in enumerate(jobs)])
        for name, missing in _NUMBERS.items()
    }
    columns |= {name: Labels.of([_label(job, name, place) for place, job in enumerate(jobs)])
                for name in _LABELS}  # fmt: skip
    columns["id"] = np.array([_id(job, place) for place, job in enumerate(jobs)], dtype=np.str_)
    lacking = np.flatnonzero(np.isnan(columns["estimate_s"]) | np.isnan(columns["submit_s"]))
    if len(lacking):
        raise YardmasterError(f"jobs[{lacking[0]}] needs submit_s and estimate_s.")
    columns["duration_s"] = columns["estimate_s"]
    time_s = _number(asked, "time_s", None, math.nan)
    if math.isnan(time_s):
        raise YardmasterError("time_s is needed: now, on the clock of submit_s.")
    late = np.flatnonzero(columns["submit_s"] > time_s)
    if len(late):
        raise YardmasterError(f"jobs[{late[0]}] is submitted after now (time_s).")
    holdings = _holdings(jobs, names)
    _check_room(holdings, cluster, names)
    return State.of(
        time_s=time_s,
        columns=columns,
        since_s=np.array([_number(job, "start_s", place) for place, job in enumerate(jobs)]),
        is_held=np.array([_held(job, place) for place, job in enumerate(jobs)], dtype=np.bool_),
        holdings=holdings,
        blocked=blocked,
        cluster=cluster,
        node_names=names,
        name="asked",
    )


def answer(state: State, decision: Decision) -> dict[str, Any]:
    """Return a decision as the schema has it."""
    ids = state.jobs.id
    return {
        "version": VERSION,
        "scheduler": decision.scheduler,
        "chosen": decision.chosen,
        "digest": decision.digest,
        "took_ms": round(1000 * decision.took_s, 3),
        "order": [
            {
                "id": str(ids[row]),
                "score": float(score) if math.isfinite(score) else None,
                "why": decision.why(row) if place < MOST_WHY else None,
            }
            for place, (row, score) in enumerate(
                zip(decision.order.tolist(), decision.scores.tolist(), strict=True)
            )
        ],
        "starts": [
            {
                "id": str(ids[start.row]),
                "nodes": [[state.node_names[node], gpus] for node, gpus in start.nodes],
            }
            for start in decision.starts
        ],
    }


def _only(found: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for name in found:
        if name not in known:
            raise YardmasterError(f"{where}: unknown entry {name!r}.{did_you_mean(name, known)}")


def _list(asked: Mapping[str, Any], name: str, most: int) -> list[Any]:
    found = asked.get(name)
    if not isinstance(found, list):
        raise YardmasterError(f"{name} must be a list.")
    if len(found) > most:
        raise YardmasterError(f"{name}: at most {most:,}, got {len(found):,}.")
    return found


def _number(
    found: Mapping[str, Any], name: str, place: int | None, missing: float = math.nan
) -> float:
    value = found.get(name)
    if value is None:
        return missing
    where = name if place is None else f"jobs[{place}].{name}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise YardmasterError(f"{where} must be a number, got {value!r}.")
    if not -LARGEST <= value <= LARGEST:  # NaN, too, is not within
        raise YardmasterError(f"{where} must be a number between ±{LARGEST:g}.")
    return float(value)


def _held(job: Mapping[str, Any], place: int) -> bool:
    value = job.get("held")
    if value is not None and not isinstance(value, bool):
        raise YardmasterError(f"jobs[{place}].held must be true or false, got {value!r}.")
    return bool(value)


def _id(job: Mapping[str, Any], place: int) -> str:
    value = job["id"]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise YardmasterError(f"jobs[{place}].id must be a text or a whole number, got {value!r}.")
    return _text(str(value), f"jobs[{place}].id")


def _text(value: str, where: str) -> str:
    """Return a text that can be given back as it came: half a character cannot, nor can a NUL."""
    if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise YardmasterError(f"{where} is no text that can be written: {value!r}.")
    return value


def _label(job: Mapping[str, Any], name: str, place: int) -> str | None:
    value = job.get(name)
    if value is not None and not isinstance(value, str):
        raise YardmasterError(f"jobs[{place}].{name} must be a text, got {value!r}.")
    return None if value is None else _text(value, f"jobs[{place}].{name}")


def _cluster(nodes: Sequence[Any]) -> tuple[Cluster, tuple[str, ...], Any]:
    groups, names, blocked = [], [], []
    for place, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise YardmasterError(f"nodes[{place}] must be an object with a name.")
        _only(node, _NODE, f"nodes[{place}]")
        gpus, lost = node.get("gpus"), node.get("blocked", 0)
        for value in (gpus, lost):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1024:
                raise YardmasterError(f"nodes[{place}]: GPUs must be a number up to 1,024.")
        kind = gpu_type(str(node.get("gpu_type", "A100")))
        groups.append(NodeGroup(count=1, gpu_type=kind, gpus=int(gpus or 0)))
        names.append(_text(node["name"], f"nodes[{place}].name"))
        blocked.append(int(lost))
    if len(set(names)) < len(names):
        raise YardmasterError("nodes: two have the same name.")
    return from_groups(groups, name="asked"), tuple(names), np.array(blocked, dtype=np.int64)


def _holdings(jobs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Any:
    number = {name: place for place, name in enumerate(names)}
    rows = []
    for place, job in enumerate(jobs):
        held_nodes = job.get("nodes") or []
        if not isinstance(held_nodes, list) or not all(_is_pair(one, number) for one in held_nodes):
            raise YardmasterError(
                f"jobs[{place}].nodes must be pairs of a node's name and its GPUs."
            )
        for held in held_nodes:
            if job.get("start_s") is None:
                raise YardmasterError(f"jobs[{place}] holds GPUs but has no start_s.")
            rows.append((place, number[held[0]], held[1]))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _is_pair(held: object, known: Mapping[str, int]) -> bool:
    """Whether it is a node's name and a number of GPUs."""
    if not isinstance(held, list) or len(held) != 2:
        return False
    name, gpus = held
    if not isinstance(name, str) or name not in known:
        return False
    return isinstance(gpus, int) and not isinstance(gpus, bool) and 1 <= gpus <= 1024


def _check_room(holdings: IntArray, cluster: Cluster, names: Sequence[str]) -> None:
    """Refuse nodes on which jobs hold more than there is."""
    held = np.bincount(holdings[:, 1], holdings[:, 2], minlength=cluster.nodes)
    full = np.flatnonzero(held > cluster.node_gpus)
    if len(full):
        node = full[0]
        raise YardmasterError(
            f"nodes[{node}] ({names[node]}): jobs hold {held[node]:.0f} GPUs of its"
            f" {cluster.node_gpus[node]}."
        )
