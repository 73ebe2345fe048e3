"""The report of a comparison: one HTML file for a browser, a phone, a printer or a mail.

The same comparison gives the same bytes.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from yardmaster.experiments.comparison import Comparison
from yardmaster.metrics.catalogue import METRICS
from yardmaster.report.exploration import exploration, exploration_script, exploration_styles
from yardmaster.report.figures import all_figures
from yardmaster.report.page import (
    fact_list,
    figure_cards,
    own_version,
    page,
    refuse_folder,
    results,
    section,
    write_page,
)
from yardmaster.report.tables import Table, comparison_table
from yardmaster.report.values import (
    decimals,
    duration_unit,
    metric_title,
    number,
    plain,
    sentence,
)
from yardmaster.report.verdict import headline


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
    refuse_folder(target)
    write_page(target, render_report(comparison, command=command))
    return target


def render_report(comparison: Comparison, *, command: str = "") -> str:
    """Return the whole page as text."""
    table = comparison_table(comparison)
    explored = exploration(comparison)
    return page(
        title=table.title,
        eyebrow=f"Comparison of {len(comparison.rows)} schedulers",
        lead=headline(comparison),
        sections=[
            section("Results", results(table)),
            section("Figures", figure_cards(all_figures(comparison))),
            explored,
            section("What was simulated", fact_list(_setting(comparison)) + _notes(comparison)),
            section("What the numbers mean", fact_list(_definitions(comparison, table))),
            section("How to reproduce this", _reproduction(comparison, command)),
        ],
        script=exploration_script() if explored else "",
        styles=exploration_styles() if explored else "",
    )


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
    facts = [("Yardmaster", own_version())]
    if comparison.schedules:
        fingerprint = comparison.schedules[0].workload.fingerprint()
        facts.append(("First workload", f"SHA-256 {fingerprint[:16]}… over all its columns"))
    return (shown if command else "") + fact_list(facts)
