"""Pages about one question: the answer in a sentence, a table, figures, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from yardmaster.experiments.eta import Forecast
from yardmaster.experiments.snapshot import Snapshot
from yardmaster.experiments.whatif_rows import WhatIf
from yardmaster.report import eta, whatif
from yardmaster.report.drawing import Figure
from yardmaster.report.page import (
    fact_list,
    figure_cards,
    own_version,
    page,
    results,
    section,
    write_page,
)
from yardmaster.report.tables import Table
from yardmaster.report.values import plain
from yardmaster.report.whatif_figures import whatif_figures


def write_whatif_page(found: WhatIf, folder: Path, *, command: str) -> None:
    """Write `report.html` and the figures of capacity questions into a run directory."""
    _write(
        folder,
        eyebrow="What if",
        lead=whatif.headline(found),
        table=whatif.whatif_table(found),
        figures=whatif_figures(found),
        definitions=whatif.definitions(found),
        command=command,
    )


def write_eta_page(moment: Snapshot, forecast: Forecast, folder: Path, *, command: str) -> None:
    """Write `report.html` and the figures of a prediction into a run directory."""
    _write(
        folder,
        eyebrow="When will it start?",
        lead=eta.headline(forecast),
        table=eta.eta_table(forecast, title=eta.moment_title(moment)),
        figures=eta.eta_figures(forecast),
        definitions=eta.definitions(),
        command=command,
    )


def _write(
    folder: Path,
    *,
    eyebrow: str,
    lead: str,
    table: Table,
    figures: Sequence[Figure],
    definitions: Iterable[tuple[str, str]],
    command: str,
) -> None:
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in table.notes)
    shown = f'<pre class="card scroll" tabindex="0"><code>{escape(plain(command))}</code></pre>\n'
    sections = [
        section("Results", results(table)),
        section("Figures", figure_cards(figures)) if figures else "",
        section("What to know", f'<ul class="notes">\n{notes}</ul>\n') if notes else "",
        section("What the numbers mean", fact_list(definitions)),
        section("How to reproduce this", shown + fact_list([("Yardmaster", own_version())])),
    ]
    text = page(title=table.title, eyebrow=eyebrow, lead=lead, sections=sections)
    write_page(folder / "report.html", text)
    (folder / "figures").mkdir(exist_ok=True)
    for figure in figures:
        (folder / "figures" / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
