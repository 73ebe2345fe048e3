"""Model cards of the shipped policies, from their files and from what the league has played.

`python experiments/policy_cards.py NAME …` writes NAME.md beside the policy.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from league_replays import measured
from league_scenes import SCENES, TRACES
from league_standings import judged_by, percent, standing
from league_store import read_record
from policy_search import LOSING, OBJECTIVES
from policy_training import reward_of

from yardmaster.model.catalogue import load_cluster
from yardmaster.report.values import metric_title
from yardmaster.schedulers.learned.catalogue import SHIPPED
from yardmaster.schedulers.learned.policy_file import read_policy
from yardmaster.schedulers.simulation import simulate
from yardmaster.workloads.sources import load_workload
from yardmaster.workloads.synthetic import generate

KNOWS = {
    "clairvoyant": "It reads true run times, which nobody has on a real cluster: what it could do"
    " with perfect estimates.",
    "estimate": "It reads the run times users ask for or a predictor gives.",
    "blind": "It reads no run times.",
}
BUILT = {
    "ppo": (
        "PPO; a network of two layers of 32 units for each waiting job. The reward of a step is a"
        " weighted sum of what accrues while time passes ({weights}), each term divided by what the"
        " best of four heuristics makes of it in the same scene."
    ),
    "evolution": (
        "Found by evolution; a network of two layers for each waiting job, which began {teacher}."
        " What counted was the metric itself over whole windows ({weights}): the logarithm of its"
        " ratio to the heuristic that is best on the training windows of the same log, where being"
        " behind counts {losing:g} times as much as being ahead."
    ),
}
SEARCHED = "python experiments/policy_search.py inputs"
TABLE = (
    "Validation windows, nobody's training data; {metric}, mean over windows; differences in %,"
    " with 95 % intervals over windows. *Chosen*: the heuristic of its league that is best on"
    " training windows. All of it: docs/results.md."
)
HOLDS_BACK = """\
- It lets long jobs wait so that short ones find room, and mean JCT pays for it: the last column.
  Where mean JCT or utilisation matters most, use a heuristic.
- It was trained on windows of some hundred jobs that begin on an empty cluster. Nothing bounds how
  long a job can wait: on a cluster that is always full, watch the longest waits. The longer a
  workload, the more it holds back: {jobs:,} jobs of `venus-like` on the cluster `demo`
  ({seeds} seeds) have a mean bounded slowdown of {mine[0]:.1f} where `{rival}` has
  {theirs[0]:.1f}, but a mean JCT of {mine[1]:.1f} h where that has {theirs[1]:.1f} h,
  and {mine[3]:.0f} % of the GPUs are busy instead of {theirs[3]:.0f} %.
- The recipe of its training by PPO (weights of the reward, discount by time, waiting by majority)
  was settled while trial policies were seen on these validation windows; which training to take,
  and what evolution made of it, was decided on training windows. Months and clusters that nobody
  has looked at are the better judges."""
SEARCHED_AGAIN = """\
- It was searched for more than once, the last time on more windows, some of which were given wider
  gangs. That was decided after an estimate-based policy had been seen to lose on a few of these
  validation windows, in which somebody tries out gangs of nearly the whole cluster. Earlier
  searches played other windows, so that the commands lead near it, not to its bytes."""
HARMS = """\
- Where hardly anybody waits it can do great harm. On NASA-iPSC, of which nothing was trained on
  ({windows} windows of {jobs} jobs on `pool:128`, told true run times), the mean bounded slowdown
  is {mine:.2f} where `{rival}` has {theirs:.2f}. Compare it on your own log before you use it."""
LONG_JOBS, LONG_SEEDS = 3_000, 8
CALM_LOG, CALM_JOBS = TRACES / "swf" / "NASA-iPSC-1993-3.1-cln.swf.gz", 512
KEEPS_TO = """\
- It stays near the heuristic it began as, and gains little where that is good already.
- Nothing bounds how long a job can wait: on a cluster that is always full, watch the longest waits.
- How it was searched for was settled on training windows alone."""
LIMITS = """\
- It knows equal GPUs that do not fail, and picks among the 64 waiting jobs that are first in its
  own order. It stops no job, and does not know tenants or deadlines.
- One training; how much another seed differs is not known."""


def card(name: str) -> str:
    """Return the card of a shipped policy."""
    policy = read_policy(SHIPPED / f"{name}.npz")
    about = policy.about
    is_found = about["learner"] == "evolution"
    counted = weights_of(about) if is_found else reward_of(name)
    weights = ", ".join(f"{term} {weight:g}" for term, weight in counted.items())
    teacher = f"by deciding nearly as `{stages(about)[0].get('teacher')}` does"
    if stages(about)[0]["learner"] == "ppo":
        teacher = "as a policy that PPO had trained"
    built = BUILT[about["learner"]].format(weights=weights, teacher=teacher, losing=1.0 + LOSING)
    script = "policy_search" if is_found else "policy_training"
    amount = "; then ".join(map(amount_of, stages(about)))
    return "\n".join(
        [
            f"# policy:{name}",
            "",
            f"{KNOWS[policy.sight['information']]} {built}",
            *("", "## Training data", ""),
            f"{about['trained_on']}. See `experiments/{script}.py`.",
            *("", "## Steps", "", f"{amount}."),
            *("", "## Seeds", "", ", ".join(str(one["seed"]) for one in stages(about)) + "."),
            *("", "## Command", "", "```", *commands(name, about), "```"),
            *("", "## GPU minutes", "", f"{minutes(about)}."),
            *("", "## Results", "", *results(name, about)),
            *("", "## Limits", "", limits(policy.sight["information"], name, about), LIMITS, ""),
        ]
    )


def stages(about: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was done for a policy, one after the other, as its file tells it."""
    return [*(stages(about["began"]) if "began" in about else ()), about]


def weights_of(search: dict[str, Any]) -> dict[str, float]:
    """Return what metrics counted in a search."""
    return dict(search.get("weights", OBJECTIVES[search["objective"]]))


def amount_of(stage: dict[str, Any]) -> str:
    """Return how much was done in a stage."""
    amount = f"{stage['steps']:,} decisions"
    if stage["learner"] != "evolution":
        return f"{amount} by PPO"
    return (
        f"{amount} of {stage['candidates']:,} candidates in {stage['generations']:,} of"
        f" {stage['asked_generations']:,} generations"
    )


def limits(information: str, name: str, about: dict[str, Any]) -> str:
    """Return what to beware of; what happens on longer workloads is played."""
    if about["learner"] == "evolution" and "began" not in about:
        return KEEPS_TO
    rival = "sjf+easy~estimate" if information == "estimate" else "sjf+easy"
    cluster = load_cluster("demo")
    played = np.zeros((2, 4))
    for seed in range(LONG_SEEDS):
        jobs = generate("venus-like", jobs=LONG_JOBS, load=0.9, gpus=cluster.gpus, seed=seed)
        for place, scheduler in enumerate((f"policy:{name}", rival)):
            found = measured(simulate(jobs, cluster, scheduler, compile_core="always"))
            played[place] += found / np.array([1.0, 3600.0, 3600.0, 0.01]) / LONG_SEEDS
    told = HOLDS_BACK.format(
        jobs=LONG_JOBS, seeds=LONG_SEEDS, rival=rival, mine=played[0], theirs=played[1]
    )
    told = f"{told}\n{_harm(name, rival)}"
    is_again = sum(stage["learner"] == "evolution" for stage in stages(about)) > 1
    return f"{told}\n{SEARCHED_AGAIN}" if is_again else told


def _harm(name: str, rival: str) -> str:
    """Say what becomes of a log in which hardly anybody has to wait."""
    jobs = load_workload(CALM_LOG)
    jobs, cluster = jobs.with_columns(estimate_s=jobs.duration_s), load_cluster("pool:128")
    firsts = range(0, len(jobs) - CALM_JOBS + 1, CALM_JOBS)
    windows = [jobs.select(np.arange(first, first + CALM_JOBS)) for first in firsts]
    mine, theirs = (
        np.mean(
            [measured(simulate(one, cluster, who, compile_core="always"))[0] for one in windows]
        )
        for who in (f"policy:{name}", rival)
    )
    return HARMS.format(windows=len(windows), jobs=CALM_JOBS, mine=mine, theirs=theirs, rival=rival)


def commands(name: str, about: dict[str, Any]) -> Sequence[str]:
    """Return what makes the policy again."""
    lines: list[str] = []
    begin = ""
    for number, stage in enumerate(stages(about)):
        if stage["learner"] != "evolution":
            lines += _trained(name, stage)
            begin = f"runs/policies/{name}.npz"
            continue
        if SEARCHED not in lines:
            lines.append(SEARCHED)
        lines.append(_searched(name, stage) + (f" --begin {name}={begin}" if begin else ""))
        if stage is not about:
            begin = f"runs/policies/{name}-{number}.npz"
            lines.append(f"mv runs/policies/search/{name}.npz {begin}")
            lines.append(f"rm runs/policies/search/{name}.state.npz")
    return lines


def _searched(name: str, stage: dict[str, Any]) -> str:
    line = (
        f"python experiments/policy_search.py search {name} --seed {stage['seed']}"
        f" --generations {stage['asked_generations']}"
    )
    usual = OBJECTIVES[stage["objective"]]
    other = [f"{key}={value:g}" for key, value in weights_of(stage).items() if usual[key] != value]
    return f"{line} --weigh {' '.join(other)}" if other else line


def _trained(name: str, about: dict[str, Any]) -> Sequence[str]:
    return [
        "python experiments/policy_training.py inputs",
        (
            f"python experiments/policy_training.py train {name} --device {about['device']}"
            f" --seed {about['seed']} --steps {about['asked_steps']} --envs {about['environments']}"
        ),
    ]


def minutes(about: dict[str, Any]) -> str:
    """Return how long a GPU was busy with it."""
    if "began" in about:
        return f"{minutes(stages(about)[0])}; then a processor"
    if about["device"] == "cuda":
        return f"{about['minutes']} on one NVIDIA H200"
    return "0: one core of a processor" + (
        f", {about['minutes']} minutes" if "minutes" in about else ""
    )


def results(name: str, about: dict[str, Any]) -> Sequence[str]:
    """Return how it did on validation windows, a row per scene."""
    metric = judged_by(about["objective"])
    lines = [
        TABLE.format(metric=metric_title(metric) + (", s" if metric.endswith("_s") else "")),
        "",
        "| scene | policy | chosen | difference | best in hindsight | difference | mean JCT |",
        "| :--- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for scene in SCENES:
        record = read_record(scene)
        if record is None or f"policy:{name}" not in record.entries:
            continue
        one = standing(record, f"policy:{name}", metric)
        jct = standing(record, f"policy:{name}", "mean_jct_s")
        lines.append(
            f"| {scene} | {_short(one.value)} | {one.chosen} {_short(one.chosen_value)} |"
            f" {percent(one.to_chosen)} | {one.best} {_short(one.best_value)} |"
            f" {percent(one.to_best)} | {percent(jct.to_chosen)} |"
        )
    return lines


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.3g}"


def main() -> None:
    """Write the cards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    for name in parser.parse_args().names:
        path = SHIPPED / f"{name}.md"
        path.write_text(card(name), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
