"""The page about a workload: a sentence, facts, pictures, tables, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.model.workload import Workload
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
from yardmaster.report.values import PERCENT, number, plain
from yardmaster.report.workload_figures import Picture, workload_pictures
from yardmaster.report.workload_tables import (
    account_facts,
    duration,
    overview_facts,
    owner_table,
    size_table,
    title,
)
from yardmaster.workloads.description.summary import Description
from yardmaster.workloads.traces.reading.account import IMPORTED

REPORT, NUMBERS = "report.html", "description.json"
"""What is written besides the figures."""

DEFINITIONS = {
    "GPU time": "GPUs × run time, summed over jobs; parts of a GPU count as parts.",
    "load": (
        "GPU time divided by what the cluster's GPUs can do between the first and the last"
        " submission. Above 1 the queue grows without end."
    ),
    "GPUs asked for": (
        "GPUs that would be busy if every job started when it is submitted; the peak hour and day"
        " are those with the highest mean."
    ),
    "jobs per hour": (
        "Over complete hours since the first submission. Variance / mean is 1 for a Poisson"
        " process; rush hours and bursts raise it."
    ),
    "cv": "Standard deviation divided by the mean.",
    "p50, p90, p99": "Half, 90 % and 99 % of the values are at most this.",
    "censored": (
        "Jobs that still ran when the trace ended, or whose run time was cut off: what is known of"
        " their run time is less than all of it."
    ),
    "estimates": "Run times that users asked for, against the true ones.",
}
"""What the numbers mean."""


def refuse_to_replace_page(folder: Path, *, overwrite: bool) -> None:
    """Complain, before any long work, if a page is there already or cannot be written.

    Raises:
        YardmasterError: if so.
    """
    if folder.exists() and not folder.is_dir():
        raise YardmasterError(f"Cannot write to {folder}: it is a file, not a folder.")
    if (folder / REPORT).exists() and not overwrite:
        raise YardmasterError(f"{folder / REPORT} is there already; --overwrite replaces it.")


def write_workload_page(
    workload: Workload,
    about: Description,
    folder: Path,
    *,
    account: Mapping[str, Any] | None = None,
    command: str = "",
) -> None:
    """Write the page, its figures as SVG and PNG, and the numbers as JSON into a folder.

    Args:
        workload: the jobs.
        about: what `describe` says of them.
        folder: where to write; made if it is not there.
        account: what an import did with the trace's rows (see `account_facts`).
        command: the command line that made the page, shown so that others can repeat it.

    Raises:
        YardmasterError: if a file cannot be written.
    """
    pictures = workload_pictures(workload, about)
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        for figure, png in pictures:
            (folder / "figures" / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
            (folder / "figures" / f"{figure.name}.png").write_bytes(png)
        (folder / NUMBERS).write_text(_json(about, account), encoding="utf-8")
    except OSError as error:
        raise YardmasterError(f"Cannot write to {folder}: {error.strerror}.") from None
    write_page(folder / REPORT, render_workload_page(about, pictures, account, command))


def render_workload_page(
    about: Description,
    pictures: Sequence[Picture],
    account: Mapping[str, Any] | None = None,
    command: str = "",
) -> str:
    """Return the whole page as text."""
    tables = [owner_table(about, what) for what in ("tenants", "users")]
    shown = f'<pre class="card scroll" tabindex="0"><code>{escape(plain(command))}</code></pre>\n'
    missing = ", ".join(about.missing_columns) or "none"
    facts = [*overview_facts(about, bars=False), ("columns missing", missing)]
    # Notes repeat the account, for workloads that no longer have one.
    notes = [note for note in about.notes if not (account and note.startswith(IMPORTED))]
    return page(
        title=title(about),
        eyebrow="Workload",
        lead=lead(about),
        sections=[
            section("At a glance", fact_list(facts) + _list(about.remarks)),
            section("Figures", figure_cards(picture.figure for picture in pictures)),
            section("Sizes and run times", results(size_table(about))),
            *(_owners(table) for table in tables if table is not None),
            section("Account of the import", fact_list(account_facts(account))) if account else "",
            section("Where it comes from", _list(notes)) if notes else "",
            section("What the numbers mean", fact_list(DEFINITIONS.items())),
            section(
                "How to reproduce this",
                (shown if command else "") + fact_list([("Yardmaster", own_version())]),
            ),
        ],
    )


def lead(about: Description) -> str:
    """Return what the workload is in a sentence or two."""
    jobs = f"{about.jobs:,} jobs were" if about.jobs > 1 else "1 job was"
    told = [f"{jobs} submitted within {duration(about.span_s)}."]
    load, mean_gpus = about.demand.load, about.demand.mean_gpus
    if load is not None and isfinite(load.load):
        told.append(
            f"They offer a load of {number(load.load, 2)} to the {load.gpus:,} GPUs of"
            f" {plain(load.cluster)}."
        )
    elif isfinite(mean_gpus):
        told.append(f"They ask for {mean_gpus:,.1f} GPUs on average.")
    largest = max(about.size_classes, key=lambda each: each.gpu_time_share)
    if isfinite(largest.gpu_time_share):
        told.append(
            f"Half of them run for at most {duration(about.duration_s.quantiles['p50'])};"
            f" those of {largest.name} GPUs have"
            f" {number(largest.gpu_time_share, 0, PERCENT)} % of the GPU time."
        )
    return " ".join(told)


def _owners(table: Table) -> str:
    return section(table.title, results(table))


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(plain(line))}</li>\n" for line in lines)
    return f'<ul class="notes">\n{items}</ul>\n' if items else ""


def numbers_of(about: Description, account: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return everything for programs: the description, and the account where there is one."""
    return about.to_dict() | ({"account": dict(account)} if account else {})


def _json(about: Description, account: Mapping[str, Any] | None) -> str:
    return json.dumps(_finite(numbers_of(about, account)), indent=2, ensure_ascii=False) + "\n"


def _finite(value: Any) -> Any:
    """Replace what JSON has no word for, NaN and infinity, by null."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
