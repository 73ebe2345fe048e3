"""Replaying with a trained policy: the same decisions as in the environment it was trained in."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from yardmaster.agents.export import policy_of
from yardmaster.agents.learners import greedy
from yardmaster.agents.networks import NetworkSettings, actor_critic
from yardmaster.envs.episodes import Episodes
from yardmaster.envs.playing import play
from yardmaster.envs.task import TASKS
from yardmaster.errors import YardmasterError
from yardmaster.metrics import per_job
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Quota, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.language import file_names, parse_scheduler
from yardmaster.schedulers.learned.driving import drive_policy
from yardmaster.schedulers.learned.policy import load_policy
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.schedulers.simulation import simulate
from yardmaster.schedulers.views import Information

TASK = TASKS["default"].changed(jobs=120, load=1.6, window=16, episodes=4)
ARCHITECTURES = ("mlp", "kernel", "self-attention", "cross-attention")


def lively(network, seed=0):
    """Give a fresh network preferences that differ: its last layer begins next to zero."""
    dice = np.random.default_rng(seed)
    for weights in network.head.parameters():
        weights.data += weights.data.new_tensor(dice.normal(0.0, 1.0, tuple(weights.shape)))
    return network


def made(folder, task=TASK, arch="kernel", seed=0):
    """Write the policy of a random network; return the network and the file."""
    source = Episodes(task, "val")
    layout = source.task.sight.layout()
    network = lively(actor_critic(NetworkSettings(arch=arch, hidden=(16,), dim=8), layout, seed))
    path = folder / f"{arch}.npz"
    write_policy(path, policy_of(network, layout, source.task.sight.to_table(), {}))
    return network, path


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_replay_makes_the_decisions_of_torch(tmp_path, arch):
    """Every network waits exactly as long in a replay as it does in the environment with torch."""
    network, path = made(tmp_path, arch=arch)
    source = Episodes(TASK, "val")
    played = play(TASK, greedy(network), split="val", episodes=3, prepared=source)
    for number in range(3):
        schedule = simulate(source.workload(number), source.cluster, f"policy:{path}", seed=number)
        assert np.nanmean(per_job.wait_s(schedule)) == pytest.approx(played.wait_s[number])
        assert float(schedule.end_s.max()) == pytest.approx(played.makespan_s[number])


def test_replay_sees_what_gpu_optimizer_features_showed(tmp_path):
    """Features that refer to the whole episode are the same in a replay, which has no horizon."""
    task = TASKS["gpu-optimizer"].changed(jobs=100, episodes=2, horizon_factor=None, max_steps=0)
    network, path = made(tmp_path, task)
    limited = task.changed(horizon_factor=1.3)
    source = Episodes(limited, "val")
    played = play(limited, greedy(network), split="val", episodes=2, prepared=source)
    for number in np.flatnonzero(played.unfinished == 0).tolist():
        schedule = simulate(source.workload(number), source.cluster, f"policy:{path}", seed=number)
        assert np.nanmean(per_job.wait_s(schedule)) == pytest.approx(played.wait_s[number])
    assert (played.unfinished == 0).any()


def test_compiled_or_not_the_schedule_is_the_same(tmp_path):
    """Plain Python and machine code pick the same jobs and the same GPUs."""
    task = TASK.changed(jobs=25)
    _, path = made(tmp_path, task)
    source = Episodes(task, "val")
    plain, compiled = (
        simulate(source.workload(0), source.cluster, f"policy:{path}", compile_core=choice)
        for choice in ("never", "always")
    )
    assert plain.fingerprint() == compiled.fingerprint()


def test_why_is_told_and_changes_nothing(tmp_path):
    """Every decision names the candidates; the best legal score is what happened, in order."""
    _, path = made(tmp_path)
    source = Episodes(TASK, "val")
    workload = source.workload(1)
    told = []
    silent = simulate(workload, source.cluster, f"policy:{path}")
    asked = simulate(workload, source.cluster, f"policy:{path}", why=told.append)
    assert asked.fingerprint() == silent.fingerprint()
    started = [why.chosen for why in told if why.chosen >= 0]
    assert sorted(started) == list(range(len(workload)))
    for why in told:
        record = json.loads(json.dumps(why.record(workload)))
        places = [entry["place"] for entry in record["candidates"]]
        assert places == list(range(1, len(places) + 1))
        assert all(entry["wait_s"] >= 0 for entry in record["candidates"])
        legal = [entry["score"] for entry in record["candidates"] if entry["legal"]]
        legal += [record["wait"]["score"]] if record["wait"]["legal"] else []
        best = max(legal)
        chosen = record["chosen"]
        if chosen is None:
            assert record["wait"]["score"] == best
        else:
            assert asked.start_s[why.chosen] == why.now_s
            assert next(e["score"] for e in record["candidates"] if e["job"] == chosen) == best


def test_a_replay_can_be_cut(tmp_path):
    """Until the cut everything is as without it; later jobs have not been submitted or ended."""
    _, path = made(tmp_path)
    source = Episodes(TASK, "val")
    workload = source.workload(0)
    whole = simulate(workload, source.cluster, f"policy:{path}")
    cut_s = float(np.median(whole.end_s))
    cut = simulate(workload, source.cluster, f"policy:{path}", until_s=cut_s)
    ended = whole.end_s <= cut_s
    assert np.array_equal(cut.end_s[ended], whole.end_s[ended])
    assert np.isnan(cut.end_s[~ended]).all()


def test_a_policy_is_an_order(tmp_path):
    """It parses with and without a placement, says what it knows, and its file is copied along."""
    _, path = made(tmp_path)
    scheduler = parse_scheduler(f"policy:{path}")
    assert str(scheduler) == f"policy:{path}"
    assert scheduler.information is Information.CLAIRVOYANT
    assert str(parse_scheduler(f"policy:{path}@spread")) == f"policy:{path}@spread"
    assert str(parse_scheduler(f"policy:{path}@pack")) == f"policy:{path}"
    assert file_names([f"policy:{path}@spread", "fifo"]) == [str(path)]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "policy.npz").write_bytes(path.read_bytes())
    assert str(parse_scheduler(f"policy:{tmp_path}/run")) == f"policy:{tmp_path}/run"
    assert file_names([f"policy:{tmp_path}/run"]) == [f"{tmp_path}/run/policy.npz"]
    _, blind = made(tmp_path, TASK.changed(information="blind"), arch="mlp")
    assert parse_scheduler(f"policy:{blind}").information is Information.BLIND


def test_what_a_policy_cannot_do_is_said(tmp_path):
    """Disciplines, MILP, the SimPy engine, missing and foreign files are refused with a reason."""
    _, path = made(tmp_path)
    source = Episodes(TASK, "val")
    workload, cluster = source.workload(0), source.cluster
    with pytest.raises(YardmasterError, match=r"leave out \+easy"):
        parse_scheduler(f"policy:{path}+easy")
    with pytest.raises(YardmasterError, match="reads the run times it was trained with"):
        parse_scheduler(f"policy:{path}~estimate")
    with pytest.raises(YardmasterError, match="one at a time"):
        parse_scheduler(f"policy:{path}@milp")
    with pytest.raises(YardmasterError, match="SimPy reference has no policies"):
        simulate(workload, cluster, f"policy:{path}", engine="simpy")
    with pytest.raises(YardmasterError, match="not rlscheduler"):
        simulate(workload, cluster, f"policy:{path}", compatibility="rlscheduler")
    with pytest.raises(YardmasterError, match="no policy file"):
        parse_scheduler("policy:nowhere.npz")
    with pytest.raises(YardmasterError, match="only policies and choosers can say why"):
        simulate(workload, cluster, "sjf", why=lambda _: None)


def test_a_policy_of_another_version_is_refused(tmp_path):
    """A file whose observation means something else is never run."""
    _, path = made(tmp_path)
    file = load_policy(path).file
    other = tmp_path / "other.npz"
    write_policy(other, replace(file, sight=file.sight | {"schema": 99}))
    with pytest.raises(YardmasterError, match="version 99 of the observation"):
        load_policy(other)
    write_policy(other, replace(file, sight=file.sight | {"window": 8}))
    with pytest.raises(YardmasterError, match="another observation"):
        load_policy(other)


def test_a_policy_keeps_within_quotas(tmp_path):
    """On a cluster with limits no tenant ever holds more than it may."""
    _, path = made(tmp_path)
    dice = np.random.default_rng(3)
    jobs = 60
    workload = Workload.of(
        name="two tenants",
        submit_s=np.sort(dice.integers(0, 500, jobs)).astype(float),
        duration_s=dice.integers(50, 900, jobs).astype(float),
        gpus=dice.choice([1, 2, 4], jobs),
        tenant=np.where(dice.random(jobs) < 0.7, "greedy", "modest"),
    )
    site = Site(quotas=(Quota("greedy", guaranteed_gpus=2, limit_gpus=6),))
    cluster = replace(Cluster.of("4x V100:4"), site=site)
    schedule = simulate(workload, cluster, f"policy:{path}", compile_core="never")
    assert per_job.is_finished(schedule).all()
    mine = workload.tenant.codes == list(workload.tenant.names).index("greedy")
    held = [
        workload.gpus[mine & (schedule.start_s <= now) & (now < schedule.end_s)].sum()
        for now in schedule.start_s
    ]
    assert max(held) == 6  # it wants more, and gets just that


def test_jobs_that_are_put_back_start_as_they_come():
    """The first jobs start at once, though this policy would rather wait; the rest is its own."""
    policy = parse_scheduler("policy:slowdown-clairvoyant").policy
    assert policy.sight.noop == "always"
    cluster = Cluster.of("A100:8")
    jobs = Workload.of(
        submit_s=[0.0, 0.5, 1.0, 2.0, 2.0],
        duration_s=[9000.0, 90_000.0, 50.0, 100.0, 10.0],
        gpus=[3, 2, 3, 8, 1],
    )
    told = []
    schedule, _ = drive_policy(
        jobs, cluster, policy, placement="pack", called="put back", put_back=3, why=told.append
    )
    assert schedule.start_s[:3].tolist() == [0.0, 0.5, 1.0]
    assert np.isfinite(schedule.end_s).all()
    assert min(one.now_s for one in told) > 1.0
