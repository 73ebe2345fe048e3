"""Replay fidelity in sentences: the verdict, how honest the choice is, and every cause."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta

from yardmaster.experiments.fidelity.evidence import Cause, CauseName, Owner
from yardmaster.experiments.fidelity.study import Fidelity
from yardmaster.report.values import (
    PERCENT,
    Unit,
    decimals,
    duration_unit,
    number,
    plain,
    shortened,
)

TITLES: dict[CauseName, str] = {
    "room": "Waiting with room",
    "caps": "Limits on users or tenants",
    "drains": "Times the machine stood still",
    "order": "Another order",
    "held": "Held jobs",
    "latency": "Latency of every start",
    "size": "Size of the cluster",
    "warm-up": "Warm-up",
}
HARDLY = 0.9
"""Differences from this share of the recorded wait on are hardly less than all of it."""
TINY = 0.0005
MOST_NAMED = 5
"""Owners and periods named one by one."""
LONGEST_NAME = 32
DAY_S = 86_400.0


def headline(found: Fidelity) -> str:
    """Return the verdict: mean waits of both sides, and how far apart they are job by job."""
    closest, distance = found.closest, found.closest.distance
    name = plain(closest.scheduler)
    who = f"The closest of {len(found.candidates)} schedulers, {name}," if found.is_guess else name
    if distance.mean_apart_s == 0:
        return f"{who} reproduces all {distance.jobs:,} recorded waits exactly."
    recorded, simulated = distance.recorded.mean_s, distance.simulated.mean_s
    unit = duration_unit([recorded or simulated])
    text = (
        f"{who} gives a mean wait of {span(simulated, unit)} where {span(recorded, unit)} was"
        f" recorded. Job by job the waits are {span(distance.mean_apart_s, unit)} apart on average"
    )
    if not recorded > 0:
        return f"{text}."
    text += f", {percent(distance.apart)} of the recorded mean"
    if distance.apart < HARDLY:
        return f"{text}."
    how = "hardly closer than" if distance.apart < 0.995 else "as far as"
    how = "further than" if distance.apart > 1.005 else how
    return f"{text}: {how} if one had said that nobody waits."


def caution(found: Fidelity) -> str:
    """Say what the choice of the closest scheduler is worth; empty if none was chosen."""
    if not found.is_guess:
        return ""
    early, best = found.chosen_early, found.best_late
    text = (
        "The closest is a guess, chosen on the data it is judged by. Chosen on the first half of"
        f" the jobs alone, it is {plain(early.scheduler)}, which on the second half is"
        f" {percent(early.halves[1])} apart"
    )
    if best.scheduler != early.scheduler:
        text += f" (closest there: {plain(best.scheduler)}, {percent(best.halves[1])})"
    if found.ties:
        equal = "another is" if found.ties == 1 else f"{found.ties} others are"
        text += f". In all, {equal} exactly as close"
    if found.closest.distance.apart >= HARDLY:
        text += ". With all of them so far off, the ranking says little about the real policy"
    return f"{text}."


def causes_found(found: Fidelity) -> list[tuple[str, str]]:
    """Return title and sentences of every cause that was found, those that explain most first."""
    causes = sorted(
        (cause for cause in found.causes if cause.is_found),
        key=lambda cause: math.inf if math.isnan(cause.share) else -cause.share,
    )
    return [(TITLES[cause.name], sentence_of(cause, found)) for cause in causes]


def causes_not_found(found: Fidelity) -> str:
    """Name what was looked for in vain; empty if everything was found."""
    names = [TITLES[cause.name] for cause in found.causes if not cause.is_found]
    if not names:
        return ""
    listed = ", ".join(name[:1].lower() + name[1:] for name in names)
    return f"Looked for and not found: {listed}."


def sentence_of(cause: Cause, found: Fidelity) -> str:
    """Return what was found of one cause, with its numbers and what it may explain."""
    text = _SENTENCES[cause.name](cause, found)
    if math.isnan(cause.share):
        return text
    if cause.share < TINY:
        return f"{text} Next to nothing of the difference is explained by that."
    of_what = "all differences" if cause.name == "warm-up" else "the difference"
    return f"{text} May explain up to {percent(cause.share)} of {of_what} directly."


def _room(cause: Cause, found: Fidelity) -> str:
    numbers = cause.numbers
    text = (
        f"{numbers['jobs']:,.0f} jobs waited longer than simulated although enough GPUs for them"
        f" were free. In all {percent(numbers['waited_share'])} of the recorded waiting was of this"
        f" kind ({percent(numbers['simulated_waited_share'])} under {_name(found)}). "
    )
    for_all = percent(numbers["room_for_all_share"])
    if numbers["extra_room_for_all_share"] < 0.01:
        return text + (
            f"Only {for_all} fell into times when every waiting job would have fitted, so that a"
            f" stricter queue than {_name(found)} may be all there is to it."
        )
    return text + (
        f"{for_all} fell into times when even the largest waiting job would have fitted, which no"
        " order of the queue explains: limits on users or queues, partitions, reservations, nodes"
        " that were down or fragmented."
    )


def _caps(cause: Cause, _found: Fidelity) -> str:
    kinds = {owner.kind for owner in cause.owners}
    who = " and ".join(f"{kind}s" for kind in ("user", "tenant") if kind in kinds)
    named = "; ".join(map(_owner, cause.owners[:MOST_NAMED]))
    rest = len(cause.owners) - MOST_NAMED
    more = f"; and {rest} more" if rest > 0 else ""
    return (
        f"{len(cause.owners)} {who} waited with room only while one more job would have exceeded"
        f" what they ever held: {named}{more}. That is what limits look like."
    )


def _owner(owner: Owner) -> str:
    return (
        f"{shortened(plain(owner.name), LONGEST_NAME)} (at most {owner.limit:g} {owner.unit},"
        f" {owner.jobs:,} jobs, {span(owner.waited_s)})"
    )


def _drains(cause: Cause, found: Fidelity) -> str:
    count = len(cause.periods_s)
    longest = sorted(cause.periods_s, key=lambda each: each[0] - each[1])[:MOST_NAMED]
    named = ", ".join(
        f"{moment(found, begin_s)} ({span(end_s - begin_s)})" for begin_s, end_s in longest
    )
    return (
        f"{'Once' if count == 1 else f'{count} times'} for half an hour or more, next to no GPUs"
        f" were in use although everybody who waited would have fitted,"
        f" {span(cause.numbers['drained_s'])} in all: outages, maintenance, reservations."
        f" {'It was' if count == 1 else 'The longest'}: {named}."
    )


def _order(cause: Cause, found: Fidelity) -> str:
    numbers = cause.numbers
    passing, would = numbers["passing_share"], numbers["simulated_passing_share"]
    text = (
        f"{percent(passing)} of the recorded starts passed a job submitted earlier"
        f" ({percent(would)} under {_name(found)})"
    )
    if passing < would and numbers["jumping_share"] <= numbers["simulated_jumping_share"]:
        return f"{text}: the real queue kept closer to the order of submission."
    return (
        f"{text}, {percent(numbers['jumping_share'])} one that asked for no more GPUs and no more"
        f" time ({percent(numbers['simulated_jumping_share'])}). Backfilling in order of submission"
        " never does the latter: priorities, several queues, fair share, limits, or held jobs."
    )


def _held(cause: Cause, found: Fidelity) -> str:
    numbers = cause.numbers
    return (
        f"{percent(numbers['own_jumping_share'])} of the recorded starts passed an earlier job of"
        " the same user that asked for no more GPUs and no more time"
        f" ({percent(numbers['simulated_own_jumping_share'])} under {_name(found)}): jobs held back"
        " by their owners, dependencies, or several queues."
    )


def _latency(cause: Cause, _found: Fidelity) -> str:
    numbers = cause.numbers
    return (
        f"Jobs that came to a machine with room and without a queue waited {numbers['median_s']:g}"
        f" s all the same (median of {numbers['jobs']:,.0f} jobs; half of them"
        f" {numbers['p25_s']:g} to {numbers['p75_s']:g} s): the scheduler's own latency."
    )


def _size(cause: Cause, _found: Fidelity) -> str:
    numbers = cause.numbers
    texts = []
    if numbers["is_too_small"]:
        texts.append(
            f"Recorded jobs held up to {numbers['peak_gpus']:,.0f} GPUs at once, and more than the"
            f" cluster's {numbers['gpus']:,.0f} for {span(numbers['above_s'])}"
            f" ({percent(numbers['above_share'])} of the time): the cluster is too small, or jobs"
            " held less than they asked for."
        )
    if numbers["is_too_large"]:
        texts.append(
            f"While jobs waited, the record hardly ever used more than"
            f" {numbers['highest_while_waiting_gpus']:,.0f} of the cluster's"
            f" {numbers['gpus']:,.0f} GPUs: the machine was smaller, part of it was closed to"
            " these jobs, or the trace does not hold all jobs."
        )
    if numbers["too_large_jobs"]:
        texts.append(
            f"{numbers['too_large_jobs']:,.0f} jobs ask for more GPUs than the cluster has, and"
            " were not simulated: the cluster is too small."
        )
    return " ".join(texts)


def _warm_up(cause: Cause, found: Fidelity) -> str:
    numbers = cause.numbers
    length_s = numbers["warm_up_ends_s"] - float(found.workload.submit_s[0])
    return (
        f"The first {span(length_s)} hold {percent(numbers['jobs_share'])} of the jobs and"
        f" {percent(cause.share)} of the differences. The real machine was not empty when the trace"
        f" began: simulated waits are {_longer(numbers['mean_difference_s'])} there, and"
        f" {_longer(numbers['later_mean_difference_s'])} later."
    )


_SENTENCES: dict[CauseName, Callable[[Cause, Fidelity], str]] = {
    "room": _room,
    "caps": _caps,
    "drains": _drains,
    "order": _order,
    "held": _held,
    "latency": _latency,
    "size": _size,
    "warm-up": _warm_up,
}


def _longer(seconds: float) -> str:
    """Write a difference as `2 h shorter on average`."""
    if math.isnan(seconds) or seconds == 0:
        return "the same on average"
    return f"{span(abs(seconds))} {'longer' if seconds > 0 else 'shorter'} on average"


def _name(found: Fidelity) -> str:
    return plain(found.closest.scheduler)


def moment(found: Fidelity, second: float) -> str:
    """Write a second of the workload's clock as a date, or as a day where nobody knows the date."""
    begins = found.workload.begins
    if not begins:
        return f"day {second / DAY_S:.1f}"
    date = datetime.fromisoformat(begins) + timedelta(seconds=second)
    return date.isoformat(sep=" ", timespec="minutes")


def span(seconds: float, unit: Unit | None = None) -> str:
    """Write a duration with its unit, by default the one it reads best in."""
    unit = duration_unit([seconds]) if unit is None else unit
    return f"{number(seconds, min(decimals([seconds], unit), 1), unit)} {unit.symbol}"


def percent(share: float) -> str:
    """Write a share in percent, small ones with a decimal."""
    if 0 < share < TINY:
        return "under 0.1 %"
    places = 1 if 0 < abs(share) < 0.0995 else 0
    return f"{number(share, places, PERCENT)} %"
