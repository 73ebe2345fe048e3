"""Drawing the jobs of an episode into rows that are laid out already.

The work is done in `SHARES` parts, each of consecutive jobs: `draw_part` for all of them, then
`settle_part` for all of them, once it is known how much work there is. On a GPU the threads of a
block share the parts; the sums are the same however many there are.
"""

from __future__ import annotations

import math
from typing import Any

from yardmaster.engine.compilation import hot_kernel, kernel
from yardmaster.engine.core.bits import dice
from yardmaster.engine.drawing.places import (
    EXCESS,
    GROWTH,
    LOAD,
    MEDIAN,
    NOISE,
    POOL_AT,
    POOL_JOBS,
    SHAPES_AT,
    SHARE,
    SHARES,
    SIZES,
    SIZES_AT,
    SOURCE,
    SPREAD,
    SWING,
    WINDOW_KEY,
    Source,
    Stream,
    WindowKey,
)
from yardmaster.engine.picking.features import CARDS
from yardmaster.engine.picking.places import (
    EPISODE_SPAN_S,
    FACTS,
    KNOWS,
    PLACEABLE,
    RUN,
    WORK,
)
from yardmaster.engine.picking.sight import LONGEST_S
from yardmaster.engine.state import (
    DURATION,
    EXPECTED,
    GPUS,
    JOB_SHAPE,
    JOBS,
    OFFSET,
    SUBMIT,
    TRUE_ENDS,
    Ints,
    Reals,
)

_EVENLY = 1.0 / 4294967296.0
_TURN = 2.0 * math.pi
LEAST_RUN_S = 1.0
"""Run time of the shortest synthetic job, seconds."""
LONGEST_RUN_S = 20 * 86_400.0
LEAST_SPAN_S = 1.0
"""Windows of a trace whose jobs all came at once last this long, seconds."""


@hot_kernel
def chance(number: int, stream: int, index: int) -> float:
    """Return a number between 0 and 1, both excluded, that depends only on the three numbers."""
    return (dice(number, stream, index) + 0.5) * _EVENLY


@hot_kernel
def between(scene: Reals, place: int, number: int, stream: int) -> float:
    """Return an episode's number between a scene's two."""
    low, high = scene[place], scene[place + 1]
    return low + (high - low) * chance(number, stream, 0)


@hot_kernel
def bell(number: int, radius: int, angle: int, index: int) -> float:
    """Return a number of the standard normal distribution (Box and Muller)."""
    length = math.sqrt(-2.0 * math.log(chance(number, radius, index)))
    return length * math.cos(_TURN * chance(number, angle, index))


@kernel
def scene_of(number: int, scenes: Any, count: int) -> int:
    """Return the scene of an episode; `scenes` are the rows of reals, one after another."""
    drawn = chance(number, Stream.SCENE, 0)
    scene = 0
    while scene < count - 1 and scenes[scene, SHARE] < drawn:
        scene += 1
    return scene


@hot_kernel
def part_begins(jobs: int, part: int) -> int:
    """Return the first job of a part."""
    return part * jobs // SHARES


@kernel
def draw_part(
    number: int,
    part: int,
    scene: Ints,
    scales: Reals,
    pool: Any,
    sizes: Any,
    shapes: Ints,
    rules: Ints,
    ints: Ints,
    reals: Reals,
    facts: Reals,
    cards: Reals,
    sums: Any,
) -> None:
    """Draw the jobs of a part; times of submission are not stretched yet.

    `scene` and `scales` are the scene's rows, `pool` the traces (submission, run time, GPUs,
    estimate), `sizes` the sizes of synthetic jobs and their shares, `shapes` the shapes of GPU
    counts. What a part adds to time and work is left in `sums`.
    """
    jobs = ints[JOBS]
    first = 0
    is_window = scene[SOURCE] == Source.WINDOW
    if is_window:
        room = scene[POOL_JOBS] - jobs + 1
        first = scene[POOL_AT] + min(int(chance(number, Stream.FIRST, 0) * room), room - 1)
    span, work = 0.0, 0.0
    for job in range(part_begins(jobs, part), part_begins(jobs, part + 1)):
        if is_window:
            row = first + job
            span += pool[0, row] - pool[0, row - 1] if job > 0 else 0.0
            run_s, gpus, guess_s = pool[1, row], int(pool[2, row]), pool[3, row]
        else:
            gpus = _size(number, job, scene, sizes)
            run_s = _run_time(number, job, scales, gpus)
            span += _gap(number, job, jobs, scales) if job > 0 else 0.0
            guess_s = math.nan
        if ints[TRUE_ENDS] == 0 and math.isnan(guess_s):
            guess_s = _guess(number, job, scales, run_s)
        known_s = run_s if ints[TRUE_ENDS] == 1 else guess_s
        reals[ints[SUBMIT] + job] = span
        _write_job(scene, shapes, rules, ints, reals, facts, cards, job, gpus, run_s, known_s)
        work += run_s * gpus
    sums[part] = span
    sums[SHARES + part] = work


@hot_kernel
def _size(number: int, job: int, scene: Ints, sizes: Any) -> int:
    """Return the GPUs of a synthetic job."""
    drawn = chance(number, Stream.SIZE, job)
    place = scene[SIZES_AT]
    last = place + scene[SIZES] - 1
    while place < last and sizes[1, place] < drawn:
        place += 1
    return int(sizes[0, place])


@hot_kernel
def _run_time(number: int, job: int, scales: Reals, gpus: int) -> float:
    """Return the run time of a synthetic job, seconds."""
    low, high = math.log(scales[MEDIAN]), math.log(scales[MEDIAN + 1])
    middle = low + (high - low) * chance(number, Stream.MEDIAN, 0)
    spread = between(scales, SPREAD, number, Stream.SPREAD)
    growth = between(scales, GROWTH, number, Stream.GROWTH)
    drawn = bell(number, Stream.RUN_RADIUS, Stream.RUN_ANGLE, job)
    run_s = math.exp(middle + growth * math.log(float(gpus)) + spread * drawn)
    return min(max(math.ceil(run_s), LEAST_RUN_S), LONGEST_RUN_S)


@hot_kernel
def _gap(number: int, job: int, jobs: int, scales: Reals) -> float:
    """Return the time since the job before, in any unit: exponential, at a rate that swings."""
    swing = between(scales, SWING, number, Stream.SWING)
    turns = 1.0 + 7.0 * chance(number, Stream.PERIOD, 0)
    phase = chance(number, Stream.PHASE, 0)
    rate = 1.0 + swing * math.sin(_TURN * (turns * job / jobs + phase))
    return -math.log(chance(number, Stream.GAP, job)) / max(rate, 0.05)


@hot_kernel
def _guess(number: int, job: int, scales: Reals, run_s: float) -> float:
    """Return an estimate of a run time, seconds: wrong by a factor that is log-normal."""
    noise = between(scales, NOISE, number, Stream.NOISE)
    excess = between(scales, EXCESS, number, Stream.EXCESS)
    drawn = bell(number, Stream.GUESS_RADIUS, Stream.GUESS_ANGLE, job)
    return max(run_s * math.exp(excess + noise * drawn), LEAST_RUN_S)


@hot_kernel
def _write_job(
    scene: Ints,
    shapes: Ints,
    rules: Ints,
    ints: Ints,
    reals: Reals,
    facts: Reals,
    cards: Reals,
    job: int,
    gpus: int,
    run_s: float,
    known_s: float,
) -> None:
    """Write a job into the rows, except when it comes."""
    ints[ints[JOB_SHAPE] + job] = shapes[scene[SHAPES_AT] + gpus]
    reals[ints[DURATION] + job] = run_s
    reals[ints[EXPECTED] + job] = known_s
    facts[FACTS + RUN + job] = known_s
    key = scene[WINDOW_KEY]
    if key == WindowKey.RUN:
        reals[ints[OFFSET] + job] = known_s
    elif key == WindowKey.AREA:
        reals[ints[OFFSET] + job] = known_s * gpus
    elif key == WindowKey.GPUS:
        reals[ints[OFFSET] + job] = float(gpus)
    total, at = float(ints[GPUS]), CARDS * job
    cards[at] = 1.0
    cards[at + 1] = min(math.log2(1.0 + gpus) / math.log2(1.0 + total), 1.0)
    cards[at + 2] = min(gpus / total, 1.0)
    if rules[KNOWS] == 1:
        cards[at + 3] = min(math.log1p(known_s) / math.log1p(LONGEST_S), 1.0)
        area = math.log1p(known_s * gpus) / math.log1p(LONGEST_S * total)
        cards[at + 4] = min(area, 1.0)
    else:
        cards[at + 3] = 0.0
        cards[at + 4] = 0.0
    cards[at + 5] = 0.0


@kernel
def settle_part(
    number: int,
    part: int,
    scene: Ints,
    scales: Reals,
    ints: Ints,
    reals: Reals,
    facts: Reals,
    sums: Any,
) -> None:
    """Stretch the times of a part to the episode's load; part 0 also notes how much work it is."""
    before, span, work = 0.0, 0.0, 0.0
    for other in range(SHARES):
        if other == part:
            before = span
        span += sums[other]
        work += sums[SHARES + other]
    load, stretch = between(scales, LOAD, number, Stream.LOAD), 1.0
    if load > 0.0:  # else times stay as they are
        stretch = work / (ints[GPUS] * load) / max(span, LEAST_SPAN_S)
    for job in range(part_begins(ints[JOBS], part), part_begins(ints[JOBS], part + 1)):
        submit_s = (before + reals[ints[SUBMIT] + job]) * stretch
        reals[ints[SUBMIT] + job] = submit_s
        if scene[WINDOW_KEY] == WindowKey.SUBMIT:
            reals[ints[OFFSET] + job] = submit_s
    if part == 0:
        facts[WORK] = max(work, 1e-9)
        facts[PLACEABLE] = float(ints[JOBS])
        facts[EPISODE_SPAN_S] = max(span * stretch + 2.0 * work / ints[GPUS], 1.0)
