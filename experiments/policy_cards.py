"""Model cards of the shipped policies, from their files and from what the league has played.

`python experiments/policy_cards.py NAME …` writes NAME.md beside the policy.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from league_scenes import SCENES
from league_standings import judged_by, percent, standing
from league_store import read_record
from policy_search import LOSING, OBJECTIVES
from policy_training import REWARDS

from yardmaster.report.values import metric_title
from yardmaster.schedulers.learned.catalogue import SHIPPED
from yardmaster.schedulers.learned.policy_file import read_policy

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
TABLE = (
    "Validation windows, nobody's training data; {metric}, mean over windows; differences in %,"
    " with 95 % intervals over windows. *Chosen*: the heuristic of its league that is best on"
    " training windows. All of it: docs/results.md."
)
HOLDS_BACK = """\
- It lets long jobs wait so that short ones find room, and mean JCT pays for it: the last column.
  Where mean JCT or utilisation matters most, use a heuristic.
- It was trained on windows of 512 jobs that begin on an empty cluster. Nothing bounds how long a
  job can wait: on a cluster that is always full, watch the longest waits. The longer a workload,
  the more it holds back: with 3,000 jobs of `venus-like` on the cluster `demo` (8 seeds), mean
  bounded slowdown is 4.9 where `sjf+easy` has 41.6, but mean JCT 9.5 h where that has 4.5 h, and
  43 % of the GPUs are busy instead of 75 %.
- The recipe (weights of the reward, discount by time, waiting by majority) was settled while trial
  policies were seen on these validation windows; which training to ship was decided on training
  windows. Months and clusters that nobody has looked at are the better judges."""
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
    objectives = OBJECTIVES if is_found else REWARDS
    weights = ", ".join(
        f"{term} {weight:g}" for term, weight in objectives[about["objective"]].items()
    )
    teacher = (
        "as a policy that PPO had trained"
        if "began" in about
        else f"by deciding nearly as `{about['teacher']}` does"
    )
    built = BUILT[about["learner"]].format(weights=weights, teacher=teacher, losing=1.0 + LOSING)
    script = "policy_search" if is_found else "policy_training"
    amount = f"{about['steps']:,} decisions"
    if is_found:
        amount += (
            f" of {about['candidates']:,} candidates in {about['generations']:,} of"
            f" {about['asked_generations']:,} generations"
        )
    if "began" in about:
        amount = f"{about['began']['steps']:,} decisions by PPO; then {amount}"
    return "\n".join(
        [
            f"# policy:{name}",
            "",
            f"{KNOWS[policy.sight['information']]} {built}",
            *("", "## Training data", ""),
            f"{about['trained_on']}. See `experiments/{script}.py`.",
            *("", "## Steps", "", f"{amount}."),
            *("", "## Seeds", "", f"{about['seed']}."),
            *("", "## Command", "", "```", *commands(name, about), "```"),
            *("", "## GPU minutes", "", f"{minutes(about)}."),
            *("", "## Results", "", *results(name, about)),
            *("", "## Limits", "", KEEPS_TO if is_found else HOLDS_BACK, LIMITS, ""),
        ]
    )


def commands(name: str, about: dict[str, Any]) -> Sequence[str]:
    """Return what makes the policy again."""
    if about["learner"] != "evolution":
        return _trained(name, about)
    begun = "began" in about
    return [
        *(_trained(name, about["began"]) if begun else ()),
        "python experiments/policy_search.py inputs",
        (
            f"python experiments/policy_search.py search {name} --seed {about['seed']}"
            f" --generations {about['asked_generations']}"
            + (f" --begin {name}=runs/policies/{name}.npz" if begun else "")
        ),
    ]


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
        return f"{minutes(about['began'])}; then a processor"
    if about["device"] == "cuda":
        return f"{about['minutes']} on one NVIDIA H200"
    return "0: one core of a processor" + (
        f", {about['minutes']} minutes" if "minutes" in about else ""
    )


def results(name: str, about: dict[str, Any]) -> Sequence[str]:
    """Return how it did on validation windows, a row per scene."""
    metric = judged_by(about["objective"])
    lines = [
        TABLE.format(metric=metric_title(metric)),
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
            f"| {scene} | {one.value:.3g} | {one.chosen} {one.chosen_value:.3g} |"
            f" {percent(one.to_chosen)} | {one.best} {one.best_value:.3g} |"
            f" {percent(one.to_best)} | {percent(jct.to_chosen)} |"
        )
    return lines


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
