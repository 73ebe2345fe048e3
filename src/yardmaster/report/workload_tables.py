"""What is in a workload, as tables: an overview, sizes, owners, and the account of its import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import Any

import numpy as np

from yardmaster.model.workload import FloatArray
from yardmaster.report.tables import Cell, Column, Table
from yardmaster.report.values import (
    MISSING,
    PERCENT,
    decimals,
    duration_unit,
    number,
    plain,
    shortened,
)
from yardmaster.workloads.description.demand import Peak
from yardmaster.workloads.description.owners import Group, Owners
from yardmaster.workloads.description.spread import Spread
from yardmaster.workloads.description.summary import Description

MOST_OWNERS = 10
"""Tenants or users shown one by one; the others are summed up in one row."""
MOST_STATUSES = 6
LONGEST_NAME = 32
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BARS = "▁▂▃▄▅▆▇█"

Fact = tuple[str, str]
"""A name and what is said of it."""


def overview_facts(about: Description, *, bars: bool = True) -> list[Fact]:
    """Return what the workload is, one fact per line, without those it knows nothing of.

    Args:
        about: what is known.
        bars: draw hours and weekdays as small bars, where there are no better pictures.
    """
    return [
        *_extent(about),
        *_demand(about),
        *_arrivals(about, bars=bars),
        ("run times", _spread_words(about.duration_s)),
        *_owner_facts(about),
        *_quality(about),
    ]


def overview_table(about: Description) -> Table:
    """Return the facts as a table of two columns, the remarks below it."""
    missing = ", ".join(about.missing_columns)
    return Table(
        title=title(about),
        columns=(Column("what", align="left"), Column("value", align="left")),
        rows=tuple((Cell(plain(name)), Cell(plain(text))) for name, text in overview_facts(about)),
        legend=(f"Columns without any value: {missing}.",) if missing else (),
        notes=tuple(plain(remark) for remark in about.remarks),
        facts={},
        records=(),
    )


def title(about: Description) -> str:
    """Return name, size and span of the workload."""
    jobs = f"{about.jobs:,} job{'s' if about.jobs != 1 else ''}"
    return f"{plain(about.name)}: {jobs} over {duration(about.span_s)}"


def size_table(about: Description) -> Table:
    """Return one row per class of sizes: how many, how much of the work, how long they run."""
    classes = about.size_classes
    spreads = [each.duration_s for each in classes]
    points = ("p10", "p50", "p90", "p99")
    parts = [
        (Column("GPUs", align="left"), [Cell(each.name) for each in classes]),
        (Column("jobs"), [Cell(f"{each.jobs:,}") for each in classes]),
        _percent("jobs", [each.jobs_share for each in classes]),
        _percent("GPU time", [each.gpu_time_share for each in classes]),
        *(
            _times(f"run time {point}", [each.quantiles[point] for each in spreads], rank)
            for point, rank in zip(points, (3, 0, 1, 2), strict=True)
        ),
        _times("longest", [each.largest for each in spreads], 4),
    ]
    return _table("Sizes and run times", parts)


def owner_table(about: Description, what: str) -> Table | None:
    """Return the largest `tenants` or `users`; None if the workload names none."""
    owners: Owners = getattr(about, what)
    if not owners.count:
        return None
    named = [group for group in owners.groups if group.name is not None]
    shown = named[:MOST_OWNERS]
    rows = [*shown, *_rest(named[MOST_OWNERS:], what), *owners.groups[len(named) :]]
    parts = [
        (Column(what.removesuffix("s"), align="left"), [Cell(_name(group)) for group in rows]),
        (Column("jobs"), [Cell(f"{group.jobs:,}") for group in rows]),
        _percent("jobs", [group.jobs_share for group in rows]),
        _percent("GPU time", [group.gpu_time_share for group in rows]),
    ]
    load = about.demand.load
    if load is not None and what == "tenants" and isfinite(load.load):
        loads = [group.gpu_time_share * load.load for group in rows]
        cells = [Cell(number(each, 3)) for each in loads]
        parts.append((Column("load"), cells))
    return _table(f"{what.capitalize()}, most GPU time first", parts)


def account_facts(account: Mapping[str, Any]) -> list[Fact]:
    """Return what an import did with the rows of a trace, one fact per line.

    Args:
        account: `stages` (what, read, kept, dropped: reason and count), `censored` and `changed`
            (what → jobs), `time_zone`, `missing_columns`, `remarks`; each may be missing.
    """
    facts = []
    for stage in account.get("stages", ()):
        facts.append((str(stage["what"]), f"{stage['read']:,} read, {stage['kept']:,} kept"))
        facts += [("dropped", f"{each['count']:,}: {each['reason']}") for each in stage["dropped"]]
    for key in ("censored", "changed"):
        facts += [(key, f"{count:,} jobs {what}") for what, count in _counts(account.get(key))]
    if account.get("time_zone"):
        facts.append(("time zone", str(account["time_zone"])))
    if account.get("missing_columns"):
        facts.append(("columns missing", ", ".join(account["missing_columns"])))
    facts += [("note", str(remark)) for remark in account.get("remarks", ())]
    return [(plain(name), plain(text)) for name, text in facts]


def account_table(account: Mapping[str, Any]) -> Table:
    """Return the account of an import as a table of two columns."""
    rows = [(Cell(name), Cell(text)) for name, text in account_facts(account)]
    columns = (Column("", align="left"), Column("import", align="left"))
    return Table("Account of the import", columns, tuple(rows), (), (), {}, ())


def duration(seconds: float) -> str:
    """Write one duration with its unit."""
    if not isfinite(seconds):
        return MISSING
    unit = duration_unit([seconds])
    return f"{number(seconds, min(decimals([seconds], unit), 1), unit)} {unit.symbol}"


def _jobs(count: int) -> str:
    return f"{count:,} job{'s' * (count != 1)}"


def _counts(entries: Any) -> list[tuple[str, int]]:
    return list(entries.items()) if isinstance(entries, Mapping) else []


def _extent(about: Description) -> Iterator[Fact]:
    empty = about.jobs_of_no_length
    yield "jobs", f"{about.jobs:,}" + (f", {empty:,} of no length" if empty else "")
    if about.first_submit:
        yield "submitted", f"{about.first_submit} to {about.last_submit}"
    else:
        first, last = about.first_submit_s, about.last_submit_s
        yield "submitted", f"second {first:,.0f} to {last:,.0f}; dates unknown"


def _demand(about: Description) -> Iterator[Fact]:
    demand, load = about.demand, about.demand.load
    places = 0 if demand.work_gpu_h >= 10 or not demand.work_gpu_h else 2
    yield "GPU time", f"{demand.work_gpu_h:,.{places}f} GPU-hours"
    if isfinite(demand.mean_gpus):
        yield "GPUs asked for", f"{demand.mean_gpus:,.1f} on average{_peaks(about, 'gpus')}"
    if load is None:
        return
    if isfinite(load.load):
        place = f"of the {load.gpus:,} GPUs of {plain(load.cluster)}"
        yield "load", f"{number(load.load, 2)} {place}{_peaks(about, 'load')}"
    if load.jobs_too_large is not None:
        part = f" ({_percentage(load.too_large_gpu_time_share)} of the GPU time)"
        why = f": {'; '.join(map(plain, load.too_large_reasons))}" * bool(load.too_large_reasons)
        yield (
            "never fit on it",
            f"{_jobs(load.jobs_too_large)}{part}{why}" if load.jobs_too_large else "no job",
        )


def _peaks(about: Description, what: str) -> str:
    peaks: list[tuple[str, Peak | None]] = [
        ("day", about.demand.peak_day),
        ("hour", about.demand.peak_hour),
    ]
    texts = []
    for name, peak in peaks:
        if peak is None:
            continue
        value = f"{peak.gpus:,.0f}" if what == "gpus" else number(peak.load, 2)
        when = f" ({_moment(peak, name)})" if what == "gpus" else ""
        texts.append(f"{value} in the peak {name}{when}")
    return "".join(f"; {text}" for text in texts)


def _moment(peak: Peak, name: str) -> str:
    if not peak.begins:
        return f"at {duration(peak.begins_s)}"
    return peak.begins[:10] if name == "day" else peak.begins[:16]


def _arrivals(about: Description, *, bars: bool) -> Iterator[Fact]:
    arrivals = about.arrivals
    if not isnan(arrivals.hourly_mean):
        dispersion = f"variance / mean {number(arrivals.hourly_dispersion, 1)} (Poisson: 1)"
        yield "jobs per hour", f"{number(arrivals.hourly_mean, 1)} on average, {dispersion}"
    if arrivals.gaps_s.count:
        gaps = _spread_words(arrivals.gaps_s)
        yield "between two", f"{gaps}; cv {number(arrivals.gaps_s.cv, 2)}"
    by_hour, by_day = arrivals.rates_by_hour(), arrivals.rates_by_weekday()
    if np.isfinite(by_hour).all():
        busiest = int(np.nanargmax(by_hour))
        drawn = f"{sparkline(by_hour)}  " if bars else ""
        yield "hour of day", f"{drawn}busiest {busiest:02d}:00"
    if np.isfinite(by_day).all():
        busiest = int(np.nanargmax(by_day))
        drawn = f"{sparkline(by_day)}  " if bars else ""
        yield "weekday", f"{drawn}busiest {WEEKDAYS[busiest]}"


def sparkline(values: FloatArray) -> str:
    """Return one bar per value, from nothing to the largest; the first of them is at the left."""
    top = float(np.nanmax(values, initial=0.0))
    steps = np.nan_to_num(values) / top * (len(_BARS) - 1) if top > 0 else np.zeros(len(values))
    return "".join(_BARS[round(step)] for step in steps.tolist())


def _owner_facts(about: Description) -> Iterator[Fact]:
    for what in ("tenants", "users"):
        owners: Owners = getattr(about, what)
        if owners.count > 1:
            largest = owners.groups[0]
            part = f"{_percentage(largest.gpu_time_share)} of the GPU time"
            half = f"{owners.half:,} of them {'has' if owners.half == 1 else 'have'} half of it"
            yield what, f"{owners.count:,}; {_name(largest)} has {part}, {half}"
        elif owners.count:
            yield what, _name(owners.groups[0])


def _quality(about: Description) -> Iterator[Fact]:
    named = [group for group in about.statuses if group.name is not None]
    if named:
        ordered = sorted(about.statuses, key=lambda group: -group.jobs)
        texts = [f"{_name(group)} {_percentage(group.jobs_share)}" for group in ordered]
        more = [f"{len(texts) - MOST_STATUSES} more"] if len(texts) > MOST_STATUSES else []
        yield "endings", ", ".join(texts[:MOST_STATUSES] + more)
        cut = about.censoring
        part = f", {_percentage(cut.gpu_time_share)} of the GPU time" if cut.jobs else ""
        yield "censored", f"{_jobs(cut.jobs)} ({_percentage(cut.jobs_share)}){part}"
    estimates, waits = about.estimates, about.waits
    if estimates.jobs_share > 0:
        ratio = number(estimates.ratio.quantiles["p50"], 2)
        below = f"{_percentage(estimates.below_share)} too short"
        having = _percentage(estimates.jobs_share)
        yield "estimates", f"for {having} of the jobs; median {ratio} × the run time, {below}"
    if waits.jobs_share > 0:
        having = _percentage(waits.jobs_share)
        mean = f"mean {duration(waits.wait_s.mean)}"
        yield "recorded waits", f"for {having} of the jobs; {mean}, {_spread_words(waits.wait_s)}"


def _spread_words(values: Spread) -> str:
    points = ", ".join(f"{key} {duration(values.quantiles[key])}" for key in ("p50", "p90", "p99"))
    return f"{points}, largest {duration(values.largest)}"


def _percentage(part: float) -> str:
    """Write a share with enough digits to tell it from nothing."""
    if isnan(part):
        return MISSING
    places = 0 if part in {0.0, 1.0} or 0.1 <= part <= 0.9 else 1
    return f"{number(part, places, PERCENT)} %"


def _rest(groups: Sequence[Group], what: str) -> list[Group]:
    if not groups:
        return []
    return [
        Group(
            f"{len(groups):,} other {what}" if len(groups) > 1 else f"1 other {what[:-1]}",
            sum(group.jobs for group in groups),
            sum(group.jobs_share for group in groups),
            sum(group.gpu_time_share for group in groups),
        )
    ]


def _name(group: Group) -> str:
    return "(none)" if group.name is None else shortened(plain(group.name), LONGEST_NAME)


Part = tuple[Column, list[Cell]]


def _percent(title_: str, values: Sequence[float]) -> Part:
    return Column(title_, PERCENT.symbol), [Cell(number(value, 1, PERCENT)) for value in values]


def _times(title_: str, values: Sequence[float], rank: int) -> Part:
    """Return durations, each in a unit of its own: seconds and weeks stand below each other."""
    return Column(title_, importance=rank), [Cell(duration(value)) for value in values]


def _table(heading: str, parts: Sequence[Part]) -> Table:
    columns, cells = zip(*parts, strict=True)
    return Table(heading, columns, tuple(zip(*cells, strict=True)), (), (), {}, ())
