"""The page `docs/results.md`: what policies and heuristics reach, written from the store alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from league_heuristics import FLOOR, LEAGUES, PREEMPTIVE, heuristics
from league_scenes import FIRST_SEED, LOGS, SCENES, Scene
from league_standings import (
    VERDICTS,
    Standing,
    in_league,
    is_policy,
    judged_by,
    percent,
    ranked,
    standing,
    verdict,
    without_twins,
)
from league_store import METRICS, Record

from yardmaster.metrics.statistics import Interval
from yardmaster.report.values import (
    PERCENT,
    Unit,
    decimals,
    duration_unit,
    metric_title,
    metric_unit,
    number,
)
from yardmaster.schedulers.views import Information
from yardmaster.workloads.files import whole_file

TOP = 8
"""Heuristics shown of each league and scene, besides the one chosen on training windows."""
AIM = -0.10
"""Relative difference to the heuristic chosen on training windows that policies are to reach."""
AIM_SCENES = ("venus", "philly")
MOST_BEHIND = 0.02
"""Relative difference to the best in hindsight that no policy is to pass anywhere."""

INTRODUCTION = """\
Trained policies against every heuristic, on jobs that nobody trained on. Everything here is made
by `python experiments/results.py league`:

```
python experiments/league.py inputs
python experiments/league.py heuristics
python experiments/league.py policies {policies}
python experiments/league.py page
```

## What the words mean

- **Window**: consecutive jobs of a log, or a generated workload; each begins on an empty cluster
  and is played to its end. Windows of a part share no job. Where a scene has a load, submissions of
  each window are stretched until it offers that load. Jobs too large for the cluster are dropped.
- **League**: *clairvoyant* schedulers read true run times, *estimate-based* ones what users said
  (requested times of KTH-SP2; elsewhere run time × exp(|N(0, 1)|), rounded up to a limit people
  write), *blind* ones neither. The leagues of those who read run times hold the blind, too: who
  knows more may do as they do.
- **Heuristics**: {count} schedulers, every order under strict, skip, commit, easy and conservative,
  placed by `pack`, in each league it belongs to. Orders that are others where nobody is stopped
  and electricity has no price (static-equal, srpt, las, las-2d, off-peak) play once. Who may stop
  jobs stands apart, at the end: a policy that picks jobs cannot. `random-feasible` is shown as a
  floor and cannot be chosen: at first it could, and in the blind league of `venus` a lucky draw
  under strict was then best on training windows and far behind on validation windows.
- **Chosen on training**: the heuristic with the best mean over training windows, by the metric of
  the table. This is what somebody could have known. **Best in hindsight**: the best on the
  validation windows themselves, of all in its league: nobody knows it beforehand, and the best of
  so many owes something to luck.
- **Numbers** are means over validation windows, of means over their jobs (JCT and bounded
  slowdown), of the 95th percentile of their jobs (p95 JCT), or of the share of GPU time in use from
  the first submission to the last completion (utilisation). Bounded slowdown is
  max(1, JCT / max(run time, 10 s)).
- **Differences** are ratios of means − 1, with 95 % intervals over windows (paired bootstrap-t, see
  `metrics/statistics.py`). *Wins* and *loses* mean that the interval excludes zero. Below zero is
  better, but for utilisation. Nothing is corrected for the number of comparisons. Where a few
  windows decide a mean, intervals are rough, and may pass what is possible.

Scenes of one log share its jobs, stretched to other loads on other machines: they are no further
evidence about that log, only about how far a policy carries. Run times of Venus are cut at two days
by the conversion that is read. On Philly a few jobs of many days make up most of the load, so that
at a load near 1 hardly anybody waits; this was seen on 32 validation windows (five heuristics,
three sizes, six loads), before any policy was there, and `philly-16` was added for it. No scene was
taken away. Philly's training part is short, and of other months than what follows: what is chosen
there can be far from the best ([below](#what-choosing-on-training-windows-costs)). To beat it is
then no feat, and the best in hindsight is the better rival.

Policies came after the scenes. The recipe of those by PPO (weights of the reward, discount by time,
waiting by majority) was settled while trial policies were seen on these validation windows; which
of several trainings is shipped, and all but one thing about searching by evolution, was decided on
training windows. `slowdown-clairvoyant` and `slowdown-estimate` are the second of their names that
were shipped, each found by evolution out of the first; this page has seen them all. That the second
`slowdown-estimate` may let GPUs stand idle for jobs to come (the first could wait only behind a
blocked job) was decided on training windows, after the first had not won on these. The one thing:
that some training windows are given gangs nearly as wide as the cluster, after a forerunner had
lost on a few of these that have such gangs. Months and clusters that nobody has looked at are the
better judges. One such is told of on the cards of both: on NASA-iPSC, where hardly anybody waits,
they make jobs wait that need not.

How single learners do in their own tasks is told [elsewhere](results/README.md), and so is
[choosing among schedulers](results/choosing.md).
"""


def write_page(records: Sequence[Record], path: Path) -> Path:
    """Write the page; return it."""
    with whole_file(path, overwrite=True) as unfinished:
        unfinished.write_text(page(records), encoding="utf-8")
    return path


def page(records: Sequence[Record]) -> str:
    """Return the page."""
    policies = policies_of(records)
    named = " ".join(policies) or "policy:NAME …"
    lines = ["# Results: the league table", ""]
    lines += [INTRODUCTION.format(policies=named, count=len(heuristics()))]
    lines += ["## The scenes", "", *_scenes(records), ""]
    lines += ["## In short", "", *_in_short(records, policies), ""]
    for policy in policies:
        lines += [f"## {policy}", "", *_of_policy(records, policy), ""]
    lines += ["## What choosing on training windows costs", "", *_cost_of_choosing(records), ""]
    for league in LEAGUES:
        lines += [f"## The {league} league", ""]
        for record in records:
            lines += [f"### {_titled(record)}", "", *_league_table(record, league), ""]
    lines += ["## Who may stop jobs", "", *_stopping(records)]
    return "\n".join(lines) + "\n"


def policies_of(records: Iterable[Record]) -> list[str]:
    """Return everybody trained who has played, leagues in their order, then by name."""
    found = {
        name: (LEAGUES.index(Information(entry.information)), name)
        for record in records
        for name, entry in record.entries.items()
        if is_policy(name)
    }
    return sorted(found, key=found.__getitem__)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table; columns of numbers stand to the right."""
    listed = list(rows)
    sides = [
        "---:" if all(_is_number(cell) for cell in column) else ":---"
        for column in zip(*listed, strict=True)
    ]
    return [_row(head), _row(sides), *(_row(cells) for cells in listed)]


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell.startswith(("+", "−", "–", "<"))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _titled(record: Record) -> str:
    return f"{record.scene}: {SCENES[record.scene].title}"


def _unit(metric: str, values: Iterable[float]) -> Unit:
    return metric_unit(metric, duration_unit(values))


def _headed(metric: str, unit: Unit) -> str:
    return f"{metric_title(metric)}, {unit.symbol}" if unit.symbol else metric_title(metric)


def _scenes(records: Sequence[Record]) -> list[str]:
    rows = []
    for record in records:
        scene = SCENES[record.scene]
        training, validation = record.windows
        rows.append(
            (
                record.scene,
                scene.title,
                _training_part(scene),
                f"{scene.jobs}",
                f"{training}",
                f"{validation}",
                " / ".join(_share(share) for share in record.dropped),
            )
        )
    head = ("scene", "what it is judged on", "training part", "jobs of a window")
    counts = ("training windows", "validation windows", "jobs too large, % (training / validation)")
    return table((*head, *counts), rows)


def _training_part(scene: Scene) -> str:
    if scene.is_generated:
        return f"seeds from {FIRST_SEED['training']:,} on"
    log = LOGS[scene.source]
    if log.border:
        return f"submitted before {log.border}"
    return f"the first {number(log.training_share, 0, PERCENT)} % of the jobs"


def _share(share: float) -> str:
    return "< 0.01" if 0.0 < share < 1e-4 else number(share, 2, PERCENT)


def _in_short(records: Sequence[Record], policies: Sequence[str]) -> list[str]:
    """Return how often each policy wins and loses, and whether it does what was aimed at."""
    if not policies:
        return ["No policy has played yet."]
    rows, said = [], []
    for policy in policies:
        stood = _standings(records, policy)
        rows.append((policy, _league_of(records, policy), *_counted(stood), *_aims(stood)))
        said += _told_plainly(policy, stood)
        said += _bought_with(records, policy, stood[0].metric)
    aim = (
        f"to the chosen, % (aim {number(AIM, 0, PERCENT)} in bounded slowdown); to the best in"
        " hindsight, %"
    )
    aims = [f"{scene}: {aim}" for scene in AIM_SCENES]
    head = ("policy", "league", "judged by", "wins", "no difference", "loses", *aims)
    behind = f"most behind the best in hindsight, % (aim ≤ {number(MOST_BEHIND, 0, PERCENT)})"
    lines = [
        "Wins and losses are against the heuristic chosen on training windows, in so many scenes.",
        "",
        *table((*head, behind), rows),
        "",
    ]
    return [*lines, *said]


def _standings(records: Sequence[Record], policy: str) -> list[Standing]:
    return [
        standing(record, policy, judged_by(record.entries[policy].objective))
        for record in records
        if policy in record.entries
    ]


def _league_of(records: Sequence[Record], policy: str) -> str:
    return next(
        record.entries[policy].information for record in records if policy in record.entries
    )


def _counted(stood: Sequence[Standing]) -> list[str]:
    found = [verdict(one.to_chosen, one.metric) for one in stood]
    counts = [f"{found.count(word)}" for word in VERDICTS]
    return [metric_title(stood[0].metric), *counts]


def _aims(stood: Sequence[Standing]) -> list[str]:
    """Return the differences that were aimed at, each with whether it was reached."""
    by_scene = {one.scene: one for one in stood}
    cells = []
    for scene in AIM_SCENES:
        one = by_scene.get(scene)
        if one is None:
            cells.append("not played")
            continue
        in_hindsight = number(one.to_best.mean, 1, PERCENT, signed=True)
        cells.append(f"{percent(one.to_chosen)}{_reached(one)}; {in_hindsight}")
    worst = max(stood, key=lambda one: _loss(one.to_best, one.metric))
    reached = "reached" if _loss(worst.to_best, worst.metric) <= MOST_BEHIND else "missed"
    return [*cells, f"{percent(worst.to_best)} ({worst.scene}), {reached}"]


def _reached(one: Standing) -> str:
    """Say whether the aim is reached; it is one of bounded slowdown alone."""
    if one.metric != METRICS[0]:
        return ""
    is_sure = verdict(one.to_chosen, one.metric) == "wins"
    return ", reached" if one.to_chosen.mean <= AIM and is_sure else ", missed"


def _loss(found: Interval, metric: str) -> float:
    """Return a difference as a loss: above zero is worse, whichever way is better."""
    return -found.mean if metric == "utilisation" else found.mean


def _bought_with(records: Sequence[Record], policy: str, metric: str) -> list[str]:
    """Return what a policy that serves another metric does to mean JCT."""
    if metric == "mean_jct_s":
        return []
    found = {
        record.scene: standing(record, policy, "mean_jct_s").to_chosen
        for record in records
        if policy in record.entries
    }
    most = max(found, key=lambda scene: found[scene].mean)
    told = [scene for scene in ("venus", "philly") if scene in found]
    words = ", ".join(f"{percent(found[scene])} % in {scene}" for scene in told)
    worst = f"at most {percent(found[most])} % ({most}), against the heuristic chosen by JCT"
    return [f"- What {policy} does to mean JCT: {words}; {worst}."]


def _told_plainly(policy: str, stood: Sequence[Standing]) -> list[str]:
    """Say where a policy wins and where it loses."""
    lines = []
    for word, what in (("wins", "beats"), ("loses", "**loses to**")):
        scenes = [one.scene for one in stood if verdict(one.to_chosen, one.metric) == word]
        if scenes:
            lines.append(f"- {policy} {what} the chosen heuristic in {', '.join(scenes)}.")
    behind = [one.scene for one in stood if verdict(one.to_best, one.metric) == "loses"]
    if behind:
        lines.append(f"- {policy} is behind the best in hindsight in {', '.join(behind)}.")
    return lines or [f"- {policy} differs clearly from the chosen heuristic nowhere."]


def _of_policy(records: Sequence[Record], policy: str) -> list[str]:
    """Return the two tables of a policy: by its own metric, and by all."""
    stood = _standings(records, policy)
    metric = stood[0].metric
    unit = _unit(metric, [one.value for one in stood])
    rows = [_compared(one, unit) for one in stood]
    compared = ("chosen on training", "difference, %", "", "best in hindsight", "difference, %", "")
    head = ("scene", _headed(metric, unit), *compared)
    every = [
        (
            record.scene,
            *(percent(standing(record, policy, each).to_chosen) for each in METRICS),
        )
        for record in records
        if policy in record.entries
    ]
    titles = [metric_title(each) for each in METRICS]
    return [
        *table(head, rows),
        "",
        "Difference to the heuristic chosen on training windows by each metric, %:",
        "",
        *table(("scene", *titles), every),
    ]


def _compared(one: Standing, unit: Unit) -> tuple[str, ...]:
    """Return a row: a policy, and how far it is from both rivals."""
    places = decimals([one.value, one.chosen_value, one.best_value], unit)
    return (
        one.scene,
        number(one.value, places, unit),
        f"{one.chosen} {number(one.chosen_value, places, unit)}",
        percent(one.to_chosen),
        verdict(one.to_chosen, one.metric),
        f"{one.best} {number(one.best_value, places, unit)}",
        percent(one.to_best),
        verdict(one.to_best, one.metric),
    )


def _cost_of_choosing(records: Sequence[Record]) -> list[str]:
    """Return how far the chosen heuristic is from the best in hindsight, by bounded slowdown."""
    metric, rows = METRICS[0], []
    for record in records:
        means = record.means("validation", metric)
        for league in LEAGUES:
            names = in_league(record, league)
            chosen = ranked(record, names, "training", metric)[0]
            best = ranked(record, names, "validation", metric)[0]
            places = decimals([means[best]])
            cost = means[chosen] / means[best] - 1.0
            rows.append(
                (
                    record.scene,
                    league,
                    f"{chosen} {number(means[chosen], places)}",
                    f"{best} {number(means[best], places)}",
                    number(cost, 1, PERCENT, signed=True),
                )
            )
    head = ("scene", "league", "chosen on training", "best in hindsight", "cost, %")
    return [f"By {metric_title(metric)}, on validation windows.", "", *table(head, rows)]


def _league_table(record: Record, league: str) -> list[str]:
    """Return the best heuristics of a league in a scene, and its policies, by slowdown."""
    metric = METRICS[0]
    rivals = without_twins(record, in_league(record, league))
    on_training = ranked(record, rivals, "training", metric)
    told = ranked(record, rivals, "validation", metric)[:TOP]
    told += [on_training[0]] if on_training[0] not in told else []
    trained = [
        name
        for name, entry in record.entries.items()
        if is_policy(name) and entry.information == league
    ]
    floor = [FLOOR] if FLOOR in record.entries else []
    shown = ranked(record, [*told, *trained, *floor], "validation", metric)
    ranks = {name: f"{place}" for place, name in enumerate(on_training, 1)}
    names = [f"**{name}**" if name in trained else name for name in shown]
    placed = [[ranks.get(name, "–")] for name in shown]
    return _values(record, shown, names, placed, ["rank on training"])


def _values(
    record: Record,
    shown: Sequence[str],
    names: Sequence[str],
    beside: Sequence[Sequence[str]],
    titles: Sequence[str],
) -> list[str]:
    """Return a table of all metrics of some schedulers."""
    columns, heads = [], []
    for metric in METRICS:
        means = record.means("validation", metric)
        values = [means[name] for name in shown]
        unit = _unit(metric, values)
        places = decimals(values, unit)
        heads.append(_headed(metric, unit))
        columns.append([number(value, places, unit) for value in values])
    numbers = zip(*columns, strict=True)
    rows = [(name, *more, *cells) for name, more, cells in zip(names, beside, numbers, strict=True)]
    return table(("scheduler", *titles, *heads), rows)


def _stopping(records: Sequence[Record]) -> list[str]:
    """Return what the preemptive disciplines reach, for orientation."""
    lines = [
        "For orientation: stopping a job, saving it and going on with it elsewhere costs nothing",
        "here, which no cluster offers. srpt reads true run times, las and las-2d read none.",
    ]
    for record in records:
        shown = [name for name in PREEMPTIVE if name in record.entries]
        if shown:
            blank: list[list[str]] = [[] for _ in shown]
            lines += ["", f"### {_titled(record)}", "", *_values(record, shown, shown, blank, [])]
    return lines
