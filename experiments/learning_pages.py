"""The pages of `docs/results`: one per learner, one on lookahead, and an overview."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from learning_results import Heuristic, Learned, Results
from learning_studies import LEARNERS, PUBLISHED_RULE

from yardmaster.experiments.contest import Verdict
from yardmaster.experiments.seeds import mean_over_seeds
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.experiments.trainings.lookahead import ARCHITECTURES, EVAL_EPISODES
from yardmaster.experiments.trainings.lookahead import MODES as LOOKAHEADS
from yardmaster.report.drawing import INK, draw
from yardmaster.report.evaluation import HOW, TITLES, estimate
from yardmaster.report.values import PERCENT, PLAIN, Unit, decimals, duration_unit, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

TITLE = {"ppo": "PPO", "d3qn": "D3QN", "rainbow": "Rainbow", "sac": "SAC"}
_SAID: tuple[tuple[Verdict, str], ...] = (
    ("worse", "loses to"),
    ("no difference", "does not differ clearly from"),
    ("better", "beats"),
)
_DASHES: tuple[tuple[float, ...], ...] = ((5, 2), (2, 2), (6, 2, 1, 2), (1, 1.5))
_COLOUR = "#0072B2"
_HOW_TO_READ = """\
Every number is a mean over training seeds and episodes. [low, high] is its 95 % interval for a new
seed on new episodes (both count as chance); heuristics have no seeds. Differences are paired: the
same episodes for everybody. *Better* and *worse* mean that the interval of the difference excludes
zero. The policy shown is the one that did best on validation episodes during its training; REPORT
episodes were played once, at the end. *Clairvoyant* players read true run times, *blind* ones none.
Wait and utilisation, on REPORT, show what a gain was bought with: bounded slowdown, above all, can
be cut by holding long jobs back. *Typical change* is the geometric mean over episodes, which a few
extreme ones cannot decide as they do the mean.

Windows of a trace overlap. They are grouped into units, most of whose windows share jobs with each
other and few with other units'; units weigh the same. Intervals are over units and symmetric, so
that with few and uneven units (Lublin has five and six) they are rough, and may pass what is
possible.
"""


_FAIRNESS = """\
Learners are held against heuristics, not against each other: budgets differ (below), PPO's settings
were chosen on VAL, the others' are their defaults. The heuristics are those that the compared
systems use, under `skip` and backfilling."""


def write_pages(results: Mapping[str, Results], docs: Path, ran_on: str = "") -> list[Path]:
    """Write every page there is something to say on; return them.

    Args:
        results: by study.
        docs: folder of the pages.
        ran_on: on what machine and how the trainings ran, for the reader.
    """
    figures = docs / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    texts = {"README.md": overview(results, ran_on)}
    for learner in LEARNERS:
        found = [each for each in results.values() if learner in each.learned]
        if found:
            texts[f"{learner}.md"] = learner_page(learner, found, figures)
    if "lookahead" in results and results["lookahead"].learned:
        texts["lookahead.md"] = lookahead_page(results["lookahead"])
    for name, text in texts.items():
        (docs / name).write_text(text, encoding="utf-8")
    return [docs / name for name in texts]


def overview(results: Mapping[str, Results], ran_on: str) -> str:
    """Return the page that sums up all studies."""
    pages = ", ".join(f"[{TITLE[name]}]({name}.md)" for name in LEARNERS)
    lines = [
        "# What the learners learned",
        "",
        _HOW_TO_READ,
        "All of it is made again by `python experiments/learning.py`. Commands, budgets, curves:",
        f"{pages}, [lookahead and architecture](lookahead.md).",
        *([f"These trainings ran on {ran_on}."] if ran_on else []),
        "",
        _FAIRNESS,
        "",
        "REPORT episodes; *best heuristic* is the one that is best on VAL.",
        "",
        _row("study", "best heuristic", *(TITLE[name] for name in LEARNERS)),
        _row(":---", ":---", *[":---"] * len(LEARNERS)),
    ]
    for found in results.values():
        if any(name in found.learned for name in LEARNERS):
            best = found.best_heuristic
            cells = [_summed_up(found, found.learned.get(name)) for name in LEARNERS]
            title = f"{found.study.title} ({TITLES[found.study.metric]})"
            mean = estimate(best.mean("report"), _places(found))
            lines.append(_row(title, f"{best.name} {mean}", *cells))
            trained = [found.learned.get(name) for name in LEARNERS]
            steps = ["–" if each is None else f"{each.budget:,}" for each in trained]
            lines.append(_row("… environment steps", "", *steps))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _summed_up(found: Results, learned: Learned | None) -> str:
    if learned is None:
        return "–"
    verdict = learned.verdict(found.best_heuristic, "report", found.study.metric)
    return f"{estimate(learned.mean('report'), _places(found))}, {verdict}"


def _places(found: Results) -> int:
    return max(decimals(each.mean("report").mean for each in found.heuristics), 1)


def learner_page(learner: str, results: Sequence[Results], figures: Path) -> str:
    """Return the page of a learner; draw its curves."""
    parts = [f"# {TITLE[learner]}\n", _HOW_TO_READ]
    parts += [_section(found, found.learned[learner], figures) for found in results]
    return "\n".join(parts)


def _cost_said(learned: Learned) -> str:
    cell = learned.cell
    said = f"A training took {learned.seconds / 60:.1f} minutes"
    if teacher := cell.train.get("warm_start"):
        said += f", after imitating {teacher}"
    return said + "."


def _section(found: Results, learned: Learned, figures: Path) -> str:
    study, name = found.study, learned.cell.name
    picture = f"{name}-{study.name}.svg"
    command = f"python experiments/learning.py run --study {study.name} --only {name}"
    (figures / picture).write_text(curve_svg(found, learned), encoding="utf-8")
    lines = [
        f"## {study.title}",
        "",
        study.about,
        "",
        f"{learned.budget:,} environment steps for each of {len(learned.seeds)} seeds.",
        _cost_said(learned) + " " + _units_said(found),
        "",
        "```",
        "python experiments/learning.py prepare",
        f"{command} --seeds {len(learned.seeds)} --steps {learned.budget}",
        "```",
        "",
        *_table(found, learned),
        "",
        _finding(found, learned),
        *_bar(found, learned),
        f"By seed, on REPORT: {_by_seed(found, learned)}.",
        _when_best(learned),
        *([f"Warnings while training: {' '.join(learned.warnings)}"] if learned.warnings else []),
        "",
        f"![{TITLE[name]} on {study.name}: validation during training](figures/{picture})",
        "",
    ]
    return "\n".join(lines)


def _units_said(found: Results) -> str:
    counts = found.unit_counts
    if all(count == found.episodes for count in counts.values()):
        return f"{found.episodes} episodes of each set."
    units = " and ".join(f"{count} ({split.upper()})" for split, count in counts.items())
    return (
        f"{found.episodes} windows of each set; they overlap, so intervals are over {units} groups"
        " of windows that overlap."
    )


def _table(found: Results, learned: Learned) -> list[str]:
    places, metric = _places(found), found.study.metric
    title = TITLE[learned.cell.learner]
    has_ratio = metric == "bounded_slowdown"
    beside = _beside(found, learned)
    val, report = (estimate(learned.mean(split), places) for split in ("val", "report"))
    own = [f"**{title}**", learned.information, HOW["policy"], f"**{val}**", f"**{report}**"]
    own += [""] * (3 if has_ratio else 2)
    rows = [(learned.mean("report").mean, _row(*own, *beside(learned)))]
    for each in found.ranked("report"):
        val, report = (estimate(each.mean(split), places) for split in ("val", "report"))
        cells = [each.name, each.information, HOW[each.how], val, report]
        cells.append(estimate(learned.difference(each, "report"), places, signed=True))
        cells.append(learned.verdict(each, "report", metric))
        if has_ratio:
            change = learned.typical_change(each, "report")
            cells.append(estimate(change, 0, PERCENT, signed=True))
        rows.append((each.mean("report").mean, _row(*cells, *beside(each))))
    rows.sort(key=lambda row: row[0], reverse=HIGHER_IS_BETTER[metric])
    columns = ["player", "information", "run", f"VAL {TITLES[metric]}", f"REPORT {TITLES[metric]}"]
    columns += [f"{title} − player", f"{title} is"]
    columns += ["typical change (%)"] if has_ratio else []
    columns += [header for header, _, _ in _shown(found, learned)]
    return [
        _row(*columns),
        _row(*[":---"] * 3, *["---:"] * 3, ":---", *["---:"] * (len(columns) - 7)),
        *(text for _, text in rows),
    ]


def _shown(found: Results, learned: Learned) -> list[tuple[str, str, Unit]]:
    """Return which metrics stand beside the one that counts, with headers and units."""
    players = [learned.beside, *(each.beside for each in found.heuristics)]
    unit = duration_unit(player["wait_s"] for player in players)
    shown = [
        (f"wait ({unit.symbol})", "wait_s", unit),
        ("utilisation (%)", "utilisation", PERCENT),
    ]
    if any(player["unfinished"] > 0 for player in players):
        shown.append(("unfinished jobs", "unfinished", PLAIN))
    return shown


def _beside(found: Results, learned: Learned) -> Callable[[Learned | Heuristic], list[str]]:
    shown = _shown(found, learned)
    return lambda player: [number(player.beside[name], 1, unit) for _, name, unit in shown]


def _finding(found: Results, learned: Learned) -> str:
    told = []
    for verdict, said in _SAID:
        names = [each.name for each in found.ranked("report") if _is(found, learned, each, verdict)]
        if names:
            told.append(f"{said} {', '.join(names)}")
    return f"On REPORT, {TITLE[learned.cell.learner]} {'; '.join(told)}."


def _is(found: Results, learned: Learned, other: Heuristic, verdict: Verdict) -> bool:
    return learned.verdict(other, "report", found.study.metric) == verdict


def _when_best(learned: Learned) -> str:
    """Say when the policies shown were found; who was best untrained has learned nothing."""
    steps = ", ".join(f"{number:,}" for number in learned.best_steps)
    said = f"Best on validation after {steps} steps."
    untrained = learned.best_steps.count(0)
    if untrained:
        begun = "its teacher" if learned.cell.train.get("warm_start") else "its random beginning"
        said += f" {untrained} of {len(learned.best_steps)} found nothing better than {begun}."
    return said


def _bar(found: Results, learned: Learned) -> list[str]:
    """Hold the mean against a published number."""
    study = found.study
    if study.bar is None:
        return []
    mean = learned.mean("report")
    if mean.low > study.bar:
        said = "is above it, the interval excludes it"
    elif mean.high < study.bar:
        said = "is below it, the interval excludes it"
    else:
        said = "cannot be told from it: the interval holds it"
    lines = [f"Against the published {study.bar:g}: {estimate(mean, 3)} {said}."]
    for same in found.heuristics:
        if same.name.startswith(PUBLISHED_RULE):
            here = estimate(same.mean("report"), 3)
            lines += [
                f"The rule that has {study.bar:g} there ({PUBLISHED_RULE}) has {here} here:",
                "other draws, and perhaps details of the program that its description lacks.",
            ]
    return lines


def _by_seed(found: Results, learned: Learned) -> str:
    places = _places(found)
    return ", ".join(f"{mean:.{places}f}" for mean in learned.units["report"].mean(axis=1))


def curve_svg(found: Results, learned: Learned) -> str:
    """Draw the metric on validation episodes over the training, every seed and their mean."""
    metric = TITLES[found.study.metric]

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        shortest = min(len(curve) for curve in learned.curves)
        for curve in learned.curves:
            axes.plot(curve[:, 0], curve[:, 1], color=_COLOUR, linewidth=0.7, alpha=0.5)
        mean = np.mean([curve[:shortest] for curve in learned.curves], axis=0)
        axes.plot(mean[:, 0], mean[:, 1], color=_COLOUR, linewidth=2.0, label="mean over seeds")
        for dash, each in zip(_DASHES, found.ranked("val"), strict=False):
            axes.axhline(each.mean("val").mean, color=INK, linestyle=(0, dash), label=each.name)
        if found.study.metric == "bounded_slowdown":
            axes.set_yscale("log")
            # Numbers in full: the picture has no typesetting of powers.
            for axis_formatter in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
                axis_formatter("{x:g}")
        axes.set_xlabel("environment steps")
        axes.set_ylabel(f"{metric} on VAL")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)

    last = mean_over_seeds([[curve[-1, 1]] for curve in learned.curves]).mean
    return draw(
        f"{learned.cell.name}-{found.study.name}",
        title=f"{TITLE[learned.cell.learner]} on {found.study.name}",
        caption="",
        alt=f"{metric} on {EVAL_EPISODES} validation episodes during training; {last:.4g} at the"
        f" end on average; thin lines are seeds, broken ones the best heuristics.",
        height_in=3.8,
        paint=paint,
    ).svg


def lookahead_page(found: Results) -> str:
    """Return the table of lookahead modes by architecture."""
    learned = found.learned
    best = found.best_heuristic
    of_best = estimate(best.mean("report"), 3)
    lines = [
        "# Lookahead and architecture",
        "",
        found.study.about,
        "",
        _HOW_TO_READ,
        "```",
        "python experiments/results.py lookahead",
        "```",
        "",
        f"Return on REPORT; {best.name}, the best heuristic on VAL: {of_best}.",
        "",
        *_grid(lambda each: estimate(each.mean("report"), 3), learned),
        "",
        f"Against {best.name}:",
        "",
        *_grid(lambda each: _gap_to(each, best), learned),
        "",
        "Against the same network without lookahead (`off`):",
        "",
        *_grid(lambda each: _gap_to_off(each, learned), learned),
        "",
        "| network | steps | seeds | minutes |",
        "|:---|---:|---:|---:|",
        *(_cost(arch, learned) for arch in ARCHITECTURES),
    ]
    return "\n".join(lines) + "\n"


def _grid(write: Callable[[Learned], str], learned: Mapping[str, Learned]) -> list[str]:
    lines = [
        _row("network", *(f"`{mode}`" for mode in LOOKAHEADS)),
        _row(":---", *[":---"] * len(LOOKAHEADS)),
    ]
    for arch in ARCHITECTURES:
        cells = [learned.get(f"{arch}_{mode}") for mode in LOOKAHEADS]
        lines.append(_row(arch, *("–" if each is None else write(each) for each in cells)))
    return lines


def _gap_to(each: Learned, best: Heuristic) -> str:
    gap = each.difference(best, "report")
    return f"{estimate(gap, 3, signed=True)}, {each.verdict(best, 'report', 'returns')}"


def _gap_to_off(each: Learned, learned: Mapping[str, Learned]) -> str:
    off = learned.get(each.cell.name.partition("_")[0] + "_off")
    if off is None or off is each:
        return ""
    mine, theirs = each.units["report"], off.units["report"]
    seeds = min(len(mine), len(theirs))
    return estimate(mean_over_seeds(mine[:seeds] - theirs[:seeds]), 3, signed=True)


def _cost(arch: str, learned: Mapping[str, Learned]) -> str:
    cells = [each for name, each in learned.items() if name.startswith(f"{arch}_")]
    if not cells:
        return f"| {arch} | – | – | – |"
    minutes = math.fsum(each.seconds for each in cells) / len(cells) / 60
    seeds = min(len(each.seeds) for each in cells)
    return f"| {arch} | {cells[0].budget:,} | {seeds} | {minutes:.1f} |"
