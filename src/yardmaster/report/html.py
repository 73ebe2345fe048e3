"""The report: one HTML file that needs nothing else, for a browser, a phone, a printer or a mail.

Styles and pictures are inline and there are no scripts; the page's own security policy forbids it
to load anything. The same comparison gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from html import escape
from importlib import metadata, resources
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.experiments.comparison import Comparison
from yardmaster.metrics.catalogue import METRICS
from yardmaster.report.drawing import NAMESPACE, Figure
from yardmaster.report.figures import all_figures
from yardmaster.report.tables import Cell, Column, Table, comparison_table
from yardmaster.report.values import (
    decimals,
    duration_unit,
    metric_title,
    number,
    plain,
    sentence,
)
from yardmaster.report.verdict import headline

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the page may load: nothing but its own styles."""


def write_report(comparison: Comparison, path: Path | str, *, command: str = "") -> Path:
    """Write the report of a comparison to one file and return its path.

    The file appears complete or not at all; an older one is replaced.

    Args:
        comparison: what to report on.
        path: the file to write; missing folders are made.
        command: the command line that made the comparison, shown so that others can repeat it.

    Raises:
        YardmasterError: if the file cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise YardmasterError(f"Cannot write the report {target}: it is a folder, not a file.")
    page = render_report(comparison, command=command)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(page, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        raise YardmasterError(f"Cannot write the report {target}: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return target


def render_report(comparison: Comparison, *, command: str = "") -> str:
    """Return the whole page as text."""
    table = comparison_table(comparison)
    style = resources.files("yardmaster.report").joinpath("report.css").read_text("utf-8")
    sections = [
        _section("Results", _results(table)),
        _section("Figures", _figures(all_figures(comparison))),
        _section("What was simulated", _facts(_setting(comparison)) + _notes(comparison)),
        _section("What the numbers mean", _facts(_definitions(comparison, table))),
        _section("How to reproduce this", _reproduction(comparison, command)),
    ]
    title = escape(table.title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} · Yardmaster</title>\n<style>\n{style}</style>\n</head>\n"
        '<body>\n<main>\n<header>\n<p class="eyebrow">Comparison of '
        f"{len(comparison.rows)} schedulers</p>\n<h1>{title}</h1>\n"
        f'<p class="lead">{escape(headline(comparison))}</p>\n</header>\n'
        + "".join(sections)
        + f"<footer>Made with Yardmaster {escape(_version())}.</footer>\n"
        "</main>\n</body>\n</html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}</section>\n"


def _results(table: Table) -> str:
    head = "".join(_head_cell(column) for column in table.columns)
    body = "".join(
        f"<tr>{''.join(map(_body_cell, table.columns, row))}</tr>\n" for row in table.rows
    )
    legend = "".join(f"<li>{escape(line)}</li>\n" for line in table.legend)
    return (
        '<div class="card scroll" tabindex="0" role="region" aria-label="Results table">\n'
        f'<table class="results">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n'
        f'</table>\n</div>\n<ul class="legend">\n{legend}</ul>\n'
    )


def _column_class(column: Column) -> str:
    if not column.title:
        return "mark"
    return "left name" if column.align == "left" else ""


def _head_cell(column: Column) -> str:
    unit = f' <span class="unit">{escape(column.unit)}</span>' if column.unit else ""
    if not column.title:
        return '<td class="mark"></td>'
    return f'<th scope="col" class="{_column_class(column)}">{escape(column.title)}{unit}</th>'


def _body_cell(column: Column, cell: Cell) -> str:
    mean, bracket, ends = cell.text.partition(" [")
    is_name = column.align == "left" and column.title
    text = escape(cell.text if is_name else mean)
    if bracket and not is_name:
        text += f' <span class="interval">[{escape(ends)}</span>'
    style = f"{_column_class(column)} {cell.tone}".strip()
    if is_name:
        return f'<th scope="row" class="{style}"><span>{text}</span></th>'
    return f'<td class="{style}">{text}</td>' if style else f"<td>{text}</td>"


def _figures(figures: Iterable[Figure]) -> str:
    # A page knows SVG without its namespace, and a page without one address cannot load anything.
    cards = "".join(
        f'<figure class="card">\n<h3>{escape(figure.title)}</h3>\n'
        f"{figure.svg.replace(NAMESPACE, '', 1)}"
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>\n"
        for figure in figures
    )
    return f'<div class="figures">\n{cards}</div>\n'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>\n" for name, text in facts)
    return f'<dl class="card">\n{items}</dl>\n'


def _setting(comparison: Comparison) -> list[tuple[str, str]]:
    """Say what ran on what, with the size of the first workload."""
    facts = [("Workload", plain(comparison.workload)), ("Cluster", plain(comparison.cluster))]
    if comparison.schedules:
        schedule = comparison.schedules[0]
        jobs, gpus = schedule.workload, schedule.cluster.gpus
        span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
        unit = duration_unit([span_s])
        span = f"{number(span_s, decimals([span_s], unit), unit)} {unit.symbol}"
        facts += [
            ("Jobs", f"{len(jobs):,} submitted within {span} ({plain(jobs.name)})"),
            ("Offered load", f"{number(jobs.load(gpus), 2)} of the capacity of {gpus:,} GPUs"),
            ("Engine", schedule.engine),
        ]
    return [
        *facts,
        ("Paired over", plain(comparison.units)),
        ("Ranked by", metric_title(comparison.objective)),
        ("Baseline", plain(comparison.baseline)),
    ]


def _notes(comparison: Comparison) -> str:
    """List everything the workload, the schedules and the comparison want the reader to know."""
    notes = list(comparison.notes)
    for schedule in comparison.schedules:
        notes += schedule.workload.notes
        notes += [f"{schedule.scheduler}: {note}" for note in schedule.notes]
    lines = "".join(f"<li>{escape(plain(note))}</li>\n" for note in dict.fromkeys(notes))
    return f'<ul class="notes">\n{lines}</ul>\n' if lines else ""


def _definitions(comparison: Comparison, table: Table) -> list[tuple[str, str]]:
    titles = {column.title for column in table.columns}
    shown = [metric for metric in METRICS if metric_title(metric.name) in titles]
    facts = [
        (metric_title(metric.name), f"{metric.definition}{_direction(metric.better)}")
        for metric in shown
    ]
    title = sentence(metric_title(comparison.objective))
    difference = (
        f"{title} of the scheduler minus that of {plain(comparison.baseline)}, in percent of the "
        "latter, on the same jobs."
    )
    gaps = {
        "Δ vs baseline": difference,
        "hindsight gap": f"{title} above that of the best scheduler of each workload.",
        "bound gap": f"{title} above a proven lower bound: what any scheduler could still gain.",
    }
    return facts + [(name, text) for name, text in gaps.items() if name in titles]


def _direction(better: str) -> str:
    return f" {sentence(better)} is better." if better != "neither" else ""


def _reproduction(comparison: Comparison, command: str) -> str:
    lines = "\n".join(plain(line) for line in command.splitlines())
    shown = f'<pre class="card scroll" tabindex="0"><code>{escape(lines)}</code></pre>\n'
    facts = [("Yardmaster", _version())]
    if comparison.schedules:
        fingerprint = comparison.schedules[0].workload.fingerprint()
        facts.append(("First workload", f"SHA-256 {fingerprint[:16]}… over all its columns"))
    return (shown if command else "") + _facts(facts)


def _version() -> str:
    try:
        return metadata.version("yardmaster")
    except metadata.PackageNotFoundError:
        return "(not installed)"
