"""Training the shipped policies: one recipe, many scenes, on a GPU or on the processor.

`python experiments/policy_training.py inputs` lays out the scenes (needs the traces);
`python experiments/policy_training.py train NAME[:STEPS] … --out FOLDER` trains policies on them
(needs torch, and on a GPU numba-cuda; `--device cpu` does without, a hundred times as slowly and on
128 episodes of each scene). Only training parts of logs are among the scenes, and only seeds that
the league does not judge by; see `league_scenes`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yardmaster.engine.picking.sight import Sight
from yardmaster.envs.scenes import Scene, SceneTask
from yardmaster.envs.usual import GAP, RIVALS, usual_terms

if TYPE_CHECKING:
    from yardmaster.agents.ppo import PPOSettings

ROOT = Path(__file__).resolve().parents[1]
INPUTS = ROOT / "runs" / "policies" / "inputs"
JOBS = 512
GENERATED_JOBS = 20_000
"""Jobs of a generated log that windows are drawn from."""
GENERATED_SEED = 1_000_000


def _of_eight(*nodes: int) -> tuple[str, ...]:
    """Return clusters of so many nodes with eight GPUs."""
    return tuple(f"{number}x V100:8" for number in nodes)


LOGS: dict[str, tuple[tuple[str, ...], tuple[float, float] | None, float]] = {
    # log: clusters, loads (None: its own times), share of each
    "venus": (_of_eight(12, 16, 24, 32, 48), (0.8, 1.3), 3.0),
    "philly": (_of_eight(8, 12, 16, 24, 40), (0.9, 2.5), 3.0),
    "lublin": (("pool:256",), None, 4.0),
    "kth": (("100x V100:1",), None, 4.0),
}
GENERATED = {
    "venus-like": (("24x V100:8", "16x V100:8"), (0.8, 1.2)),
    "philly-like": (("16x V100:8", "12x V100:8"), (0.8, 2.0)),
    "lognormal": (("8x V100:8",), (0.8, 1.3)),
    "acme-like": (("32x A100:8",), (0.7, 1.2)),
    "heavy-tails": (("12x V100:8",), (0.7, 1.2)),
    "mm": (("2x V100:8",), (0.7, 1.1)),
}
SYNTHETIC = ("2x V100:8", "4x V100:4", "8x V100:8", "16x V100:8", "32x V100:8", "64x V100:1")
SIZES = {1: 0.5, 2: 0.14, 4: 0.12, 8: 0.16, 16: 0.05, 32: 0.03}

REWARDS: dict[str, dict[str, float]] = {
    # Bounded slowdown alone is best served by holding long jobs back until nobody comes any more,
    # which halves utilisation: waiting counts too.
    "slowdown": {"bounded_slowdown": -3.0, "waiting": -1.0},
    "jct": {"waiting": -1.0},
    "p95": {"queue_wait": -1.0, "waiting": -0.3},
    "mixed": {"bounded_slowdown": -1.0, "waiting": -1.0, "queue_wait": -1.0},
}
"""Objective → weights of terms, each divided by what it usually comes to in the scene."""
ESTIMATED_SLOWDOWN = {"bounded_slowdown": -2.0, "waiting": -1.0}
"""Who reads estimates holds back jobs that are short after all: slowdown counts less."""
INFORMATION = {
    "clairvoyant": Sight(information="clairvoyant", window_order="sjf", noop="always"),
    # Wrong estimates make idling without a reason a poor bet.
    "estimate": Sight(information="estimate", window_order="sjf", noop="when_blocked"),
    # Who knows nothing of run times gains nothing by idling.
    "blind": Sight(information="blind", window_order="smallest-first", noop="never"),
}
TEACHERS = {"blind": "smallest-first"}
"""Heuristic that a policy decides like before it learns. Those who know run times find out more by
beginning with nothing; who is blind learns too little of what is good to begin with nothing."""
TRAINED_ON = (
    "Venus until June 2020, Philly until September 2017, the first 60 % of Lublin-256 and KTH-SP2,"
    " generated jobs; 26 scenes"
)
NAMES = tuple(f"{reward}-{information}" for reward in REWARDS for information in INFORMATION)


def reward_of(name: str) -> dict[str, float]:
    """Return the weights of a policy's reward."""
    return ESTIMATED_SLOWDOWN if name == "slowdown-estimate" else REWARDS[name.rsplit("-", 1)[0]]


def scenes() -> tuple[Scene, ...]:
    """Return everything that policies are trained on."""
    import league_scenes

    found = []
    for log, (clusters, load, share) in LOGS.items():
        for cluster in clusters:
            place = league_scenes.Scene(log, log, log, cluster)
            jobs = league_scenes.jobs_of(place, "training")
            found.append(
                Scene(
                    name=f"{log} on {cluster}",
                    cluster=cluster,
                    trace=jobs,
                    load=load,
                    share=share / len(clusters),
                )
            )
    for name, (clusters, load) in GENERATED.items():
        for cluster in clusters:
            place = league_scenes.Scene(name, name, name, cluster, GENERATED_JOBS, 1.0)
            jobs = league_scenes.generated(place, GENERATED_SEED)
            found.append(
                Scene(
                    name=f"{name} on {cluster}",
                    cluster=cluster,
                    trace=jobs,
                    load=load,
                    share=1.0 / len(clusters),
                )
            )
    found += [
        Scene(
            name=f"synthetic on {cluster}",
            cluster=cluster,
            sizes=SIZES,
            load=(0.6, 1.4),
            median_s=(60.0, 3600.0),
            spread=(1.0, 2.8),
            growth=(-0.3, 0.6),
            share=0.6,
        )
        for cluster in SYNTHETIC
    ]
    return tuple(found)


def prepare_inputs() -> None:
    """Lay out the scenes for each kind of information, and keep the rows."""
    INPUTS.mkdir(parents=True, exist_ok=True)
    everything = scenes()
    for information, sight in INFORMATION.items():
        task = SceneTask(scenes=everything, jobs=JOBS, sight=sight)
        rows = task.rows()
        usual = usual_terms(task, rows, RIVALS[information])
        with gzip.open(INPUTS / f"{information}.pkl.gz", "wb", 3) as file:
            pickle.dump((rows, usual, taught(information) if information in TEACHERS else {}), file)
        print(information, len(rows.names), "scenes")
        for name, terms in usual.items():
            print("  ", name, {term: round(value, 3) for term, value in terms.items()})


def taught(information: str) -> dict[str, npt.NDArray[np.float32]]:
    """Return the weights of a network that decides as the teacher does."""
    from yardmaster.agents.cloning import CloneSettings, clone
    from yardmaster.agents.learners import weights
    from yardmaster.agents.networks import actor_critic
    from yardmaster.envs.batch import open_batch
    from yardmaster.envs.experts import expert
    from yardmaster.envs.task import Task

    task = Task(
        workload="lognormal",
        cluster="16x V100:8",
        load=1.2,
        measured_unit=False,
        sight=INFORMATION[information],
    )
    batch = open_batch(task, size=64, threads=2)
    learning = recipe("cpu", batch.size, information)
    network = actor_critic(learning.network, batch.layout, 0)
    settings = CloneSettings(steps=100_000, gamma=learning.gamma)
    teacher: Any = expert(TEACHERS[information], task)
    told = clone(network, batch, teacher, settings, 0)
    print(information, {name: round(value, 3) for name, value in told.items()})
    return {name: part.numpy() for name, part in weights(network).items()}


def train(name: str, out: Path, *, steps: int, envs: int, seed: int, device: str) -> None:
    """Train one policy and write it, with how it went."""
    import torch

    from yardmaster.agents.networks import actor_critic
    from yardmaster.agents.ppo import PPO
    from yardmaster.agents.tensors import open_scenes

    reward, information = name.rsplit("-", 1)
    with gzip.open(INPUTS / f"{information}.pkl.gz", "rb") as file:
        rows, usual, teacher = pickle.load(file)  # noqa: S301  (made by this script)
    task = SceneTask(
        scenes=(),
        jobs=rows.jobs,
        reward=reward_of(name),
        unit_s={scene: terms.pop(GAP) for scene, terms in usual.items()},
        usual=usual,
        sight=INFORMATION[information],
    )
    begun = time.perf_counter()
    batch = open_scenes(rows, task, envs, seed=seed, device=device)
    settings = replace(recipe(device, envs, information), total_steps=steps)
    network = actor_critic(settings.network, batch.layout, seed)
    if teacher:
        network.load_state_dict({key: torch.from_numpy(part) for key, part in teacher.items()})
        settings = replace(settings, learning_rate=1e-3, entropy=0.001, critic_first=8)
    learner = PPO(batch, settings, seed=seed, network=network, device=device)
    ready_s = time.perf_counter() - begun
    lines: list[dict[str, float]] = []
    while learner.steps < steps:
        scalars = learner.update()
        lines.append(scalars | {"steps": learner.steps, "seconds": time.perf_counter() - begun})
        if learner.updates % max(steps // (learner.steps // learner.updates) // 6, 1) == 0:
            tell(name, lines[-1])
    seconds = time.perf_counter() - begun
    about = {
        "learner": "ppo",
        "steps": learner.steps,
        "asked_steps": steps,
        "environments": envs,
        "objective": reward,
        "trained_on": TRAINED_ON,
        "teacher": TEACHERS.get(information, "none"),
        "seed": seed,
        "device": device,
        "minutes": round(seconds / 60, 2),
    }
    write(out, name, learner, about, {"ready_s": ready_s, "seconds": seconds, "lines": lines[::4]})
    rate = learner.steps / (seconds - ready_s)
    print(f"{name}: {learner.steps:,} steps in {seconds:.0f} s, {rate:.3g} steps/s", flush=True)


def tell(name: str, line: dict[str, float]) -> None:
    """Print how a training stands."""
    told = ("episode_return", "entropy", "noop_share", "explained_variance")
    words = ", ".join(f"{key} {line.get(key, np.nan):.3f}" for key in told)
    print(f"{name}: {line['steps']:.3g} steps, {line['seconds']:.0f} s, {words}", flush=True)


def write(out: Path, name: str, learner: Any, about: dict[str, Any], log: dict[str, Any]) -> None:
    """Write a policy and the log of its training."""
    from yardmaster.agents.export import policy_of
    from yardmaster.schedulers.learned.policy_file import write_policy

    out.mkdir(parents=True, exist_ok=True)
    sight, layout = INFORMATION[name.rsplit("-", 1)[1]], learner.batch.layout
    write_policy(out / f"{name}.npz", policy_of(learner.network, layout, sight.to_table(), about))
    (out / f"{name}.json").write_text(json.dumps(log))


def recipe(device: str, envs: int, information: str) -> PPOSettings:
    """Return how policies learn: on a GPU much at a time, on the processor little, more often."""
    from yardmaster.agents.ppo import PPOSettings

    is_gpu = device == "cuda"
    return PPOSettings(
        steps_per_update=16 * envs if is_gpu else 16_384,
        epochs=2,
        minibatches=max(envs // 8192, 1) if is_gpu else 8,
        learning_rate=2e-3 if is_gpu else 1e-3,
        lr_end=0.05,
        gamma=0.997,
        discount_per_s=1.0,
        gae_lambda=0.97,
        lambda_per_s=1.0 if information == "estimate" else None,
        entropy=0.003,
        entropy_end=0.0,
        target_kl=None,
    )


def main() -> None:
    """Lay out, or train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("inputs", "train"))
    parser.add_argument("names", nargs="*", metavar="NAME[:STEPS]")
    parser.add_argument("--steps", type=int, default=300_000_000)
    parser.add_argument("--envs", type=int, help="65,536 on a GPU, 256 on the processor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "policies")
    asked = parser.parse_args()
    if asked.what == "inputs":
        prepare_inputs()
        return
    for word in asked.names or NAMES:
        name, _, steps = word.partition(":")
        train(
            name,
            asked.out,
            steps=int(steps or asked.steps),
            envs=asked.envs or (65_536 if asked.device == "cuda" else 256),
            seed=asked.seed,
            device=asked.device,
        )


if __name__ == "__main__":
    main()
