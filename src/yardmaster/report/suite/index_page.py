"""The page that ties all tables and figures of an experiment together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from yardmaster.report.drawing import NAMESPACE, Figure
from yardmaster.report.page import fact_list, own_version, page, results
from yardmaster.report.suite.chapters import Chapter, NamedTable
from yardmaster.report.suite.estimates import best_fixed, mean_gaps, seed_means
from yardmaster.report.suite.experiment import Experiment
from yardmaster.report.suite.measures import definition, title, unit
from yardmaster.report.suite.runs import Runs
from yardmaster.report.suite.sketches import Sketch
from yardmaster.report.suite.words import counted
from yardmaster.report.values import PERCENT, decimals, number, plain, sentence

MOST_FAILURES = 20
_DEFINED = (
    "mean_jct_s", "p95_jct_s", "p99_jct_s", "mean_bounded_slowdown", "sla", "utilisation",
    "max_queue", "queue_exploded", "jain_jobs", "switches", "choice_entropy", "recovery_s",
)  # fmt: skip
_GAP = (
    "hindsight gap",
    (
        "A run's number / the least of any fixed scheduler on the same jobs − 1. Schedulers that"
        " learn or choose among others are not fixed; below 0 they beat every fixed one."
    ),
)


def render_index(
    experiment: Experiment,
    parts: Sequence[Chapter],
    figures: Mapping[str, Figure],
    *,
    picture_endings: Sequence[str],
    table_endings: Sequence[str],
) -> str:
    """Return the whole page as text.

    Args:
        experiment: what it is about.
        parts: tables and figures.
        figures: the drawn figures by name.
        picture_endings: of the files of every figure beside the page.
        table_endings: of the files of every table.
    """
    sections = [_contents(parts)]
    for chapter in parts:
        tables = "".join(_table(each, table_endings) for each in chapter.tables)
        cards = _cards(chapter.figures, figures, picture_endings)
        maps = _cards(chapter.maps, figures, picture_endings)
        sections.append(_section(chapter.name, chapter.title, tables + cards + maps))
    sections += [
        _section("notes", "What to know", _notes(experiment, parts)),
        _section("definitions", "What the numbers mean", fact_list(_definitions(experiment))),
        _section("origin", "What was run", fact_list(_origin(experiment))),
    ]
    return page(
        title=plain(experiment.name),
        eyebrow=f"Experiment of {counted(experiment.rows, 'run')}",
        lead=headline(experiment),
        sections=sections,
    )


def headline(experiment: Experiment) -> str:
    """Return who is best in each family, by each objective."""
    told = [_family_headline(runs.clean(), experiment.objectives) for runs in experiment.families]
    return " ".join(text for text in told if text) or "No family of regimes is complete."


def _family_headline(runs: Runs, objectives: Sequence[str]) -> str:
    if not len(runs):
        return ""
    texts = []
    for objective in objectives:
        best = best_fixed(runs, objective)
        value = float(seed_means(runs, objective)[runs.row(best)].mean())
        gap = mean_gaps(runs, objective)[runs.row(best)].mean
        written_in = unit(objective, [value])
        amount = f"{number(value, decimals([value], written_in), written_in)} {written_in.symbol}"
        texts.append(
            f"{plain(best)} by {title(objective)} ({amount.strip()};"
            f" {number(gap, 1, PERCENT)} % behind the best of each run)"
        )
    return f"Best fixed scheduler on {plain(runs.family)}: {', '.join(texts)}."


def _contents(parts: Sequence[Chapter]) -> str:
    links = "".join(
        f'<li><a href="#{escape(each.name)}">{escape(each.title)}</a></li>\n' for each in parts
    )
    return f'<nav aria-label="Contents">\n<ul class="notes">\n{links}</ul>\n</nav>\n'


def _section(name: str, heading: str, body: str) -> str:
    return f'<section id="{escape(name)}">\n<h2>{escape(heading)}</h2>\n{body}</section>\n'


def _table(named: NamedTable, endings: Sequence[str]) -> str:
    body = results(named.table) + _files("tables", named.name, endings)
    heading = escape(named.table.title)
    if named.is_folded:
        return f"<details>\n<summary>{heading}</summary>\n{body}</details>\n"
    return f"<h3>{heading}</h3>\n{body}"


def _cards(
    sketches: Iterable[Sketch], figures: Mapping[str, Figure], endings: Sequence[str]
) -> str:
    cards = "".join(_card(sketch, figures[sketch.name], endings) for sketch in sketches)
    return f'<div class="figures">\n{cards}</div>\n' if cards else ""


def _card(sketch: Sketch, figure: Figure, endings: Sequence[str]) -> str:
    # A page knows SVG without its namespace, and a page without one address cannot load anything.
    drawn = figure.svg.replace(NAMESPACE, "", 1)
    kind = "card wide" if sketch.is_wide else "card"
    return (
        f'<figure class="{kind}">\n<h3>{escape(figure.title)}</h3>\n'
        f'<div class="scroll" tabindex="0">{drawn}</div>\n'
        f"<figcaption>{escape(figure.caption)}</figcaption>\n"
        f"{_files('figures', sketch.name, endings)}</figure>\n"
    )


def _files(folder: str, name: str, endings: Sequence[str]) -> str:
    """Return links to the files beside the page."""
    links = " · ".join(
        f'<a href="{folder}/{escape(name)}.{ending}">{ending.upper()}</a>' for ending in endings
    )
    return f'<p class="files">{links}</p>\n'


def _notes(experiment: Experiment, parts: Sequence[Chapter]) -> str:
    notes = list(
        dict.fromkeys(note for part in parts for each in part.tables for note in each.table.notes)
    )
    if experiment.jct_quantiles_s is None:
        notes.append("The store of runs is not here, so there are no curves of completion times.")
    if experiment.failures:
        notes.append(f"{counted(len(experiment.failures), 'run')} could not be made.")
        notes += experiment.failures[:MOST_FAILURES]
    notes.append(
        "Regimes are given and seeds are drawn: intervals say what other seeds would change, not"
        " what other regimes would."
    )
    lines = "".join(f"<li>{escape(plain(note))}</li>\n" for note in notes)
    return f'<ul class="notes">\n{lines}</ul>\n'


def _definitions(experiment: Experiment) -> list[tuple[str, str]]:
    known = {name for runs in experiment.families for name in runs.numbers}
    wanted = dict.fromkeys((*experiment.objectives, *_DEFINED))
    facts = [(title(name), definition(name)) for name in wanted if name in known]
    return [*facts, _GAP]


def _origin(experiment: Experiment) -> list[tuple[str, str]]:
    facts = [(f"{sentence(plain(runs.family))}", _extent(runs)) for runs in experiment.families]
    if experiment.description:
        facts.insert(0, ("Experiment", plain(experiment.description)))
    return [
        *facts,
        ("Schedulers", ", ".join(plain(name) for name in experiment.schedulers)),
        ("Table", f"results.parquet, SHA-256 {experiment.digest[:16]}…"),
        ("Yardmaster", own_version()),
    ]


def _extent(runs: Runs) -> str:
    regimes = len({scenario.regime for scenario in runs.scenarios})
    disturbed = sum(not scenario.is_clean for scenario in runs.scenarios)
    more = f", {counted(disturbed, 'disturbed regime')}" if disturbed else ""
    return (
        f"{counted(regimes, 'regime')}{more}, {counted(len(runs.schedulers), 'scheduler')},"
        f" {counted(len(runs.seeds), 'seed')}: {counted(len(runs), 'run')}"
    )
