"""The page about replay fidelity, and the folder it stands in."""

from __future__ import annotations

import json
import math
import os
import shutil
from html import escape
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.fidelity.study import Fidelity
from yardmaster.report.drawing import Figure
from yardmaster.report.fidelity import (
    definitions,
    distance_table,
    fidelity_record,
    ranking_table,
    sides_table,
    title,
)
from yardmaster.report.fidelity_figures import fidelity_figures
from yardmaster.report.fidelity_words import causes_found, causes_not_found, caution, headline
from yardmaster.report.page import (
    fact_list,
    figure_cards,
    own_version,
    page,
    results,
    section,
)
from yardmaster.report.values import plain

NUMBERS = "fidelity.json"
"""What makes a folder the result of an earlier run."""


def refuse_to_replace(folder: Path, *, overwrite: bool) -> None:
    """Complain, before any long work, if the folder is taken.

    Raises:
        YardmasterError: if something else is there, or an earlier result that must not be replaced.
    """
    if not folder.exists():
        return
    if not (folder / NUMBERS).is_file():
        raise YardmasterError(
            f"{folder} already exists and is not the result of `workload fidelity`; choose another"
            " place with --out."
        )
    if not overwrite:
        raise YardmasterError(f"{folder} already exists; --overwrite replaces it.")


def write_fidelity(
    found: Fidelity, folder: Path, *, command: str = "", overwrite: bool = False
) -> None:
    """Write page, figures and numbers; the folder appears complete or not at all.

    Raises:
        YardmasterError: if the folder is taken or cannot be written.
    """
    refuse_to_replace(folder, overwrite=overwrite)
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    figures = fidelity_figures(found)
    numbers = json.dumps(_without_nan(fidelity_record(found)), indent=1, ensure_ascii=False)
    try:
        (partial / "figures").mkdir(parents=True)
        text = render_page(found, figures, command=command)
        (partial / "report.html").write_text(text, encoding="utf-8")
        (partial / NUMBERS).write_text(numbers + "\n", encoding="utf-8")
        for figure in figures:
            (partial / "figures" / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except OSError as error:
        raise YardmasterError(f"Cannot write to {folder}: {error.strerror}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def render_page(found: Fidelity, figures: tuple[Figure, ...], *, command: str = "") -> str:
    """Return the whole page as text."""
    sides, measures = sides_table(found), distance_table(found)
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in measures.notes)
    shown = f'<pre class="card scroll" tabindex="0"><code>{escape(plain(command))}</code></pre>\n'
    return page(
        title=title(found),
        eyebrow="Replay fidelity",
        lead=headline(found),
        sections=[
            section("How far apart", _paragraph(caution(found)) + results(ranking_table(found))),
            section("Why", _why(found)),
            section("Figures", figure_cards(figures)),
            section(sides.title, results(sides)),
            section(f"{measures.title}: simulated minus recorded", results(measures)),
            section("What to know", f'<ul class="notes">\n{notes}</ul>\n'),
            section("What the numbers mean", fact_list(definitions(found))),
            section(
                "How to reproduce this",
                (shown if command else "") + fact_list([("Yardmaster", own_version())]),
            ),
        ],
    )


def _why(found: Fidelity) -> str:
    causes = causes_found(found)
    listed = fact_list(causes) if causes else ""
    return listed + _paragraph(causes_not_found(found))


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n" if text else ""


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
