"""Where everything stands in the rows that describe scenes.

A scene is a cluster with a source of jobs. Episodes are drawn by number: the number alone decides
the scene, the jobs, their times and the load. Every name below is a place in a scene's row of
integers or of reals.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count

_place = count()

# integers of a scene
TEMPLATE = next(_place)  # its row in the bank of clusters, laid out with jobs that mean nothing
SOURCE = next(_place)  # a Source
POOL_AT = next(_place)  # first job of its trace in the pool
POOL_JOBS = next(_place)  # jobs of its trace
SHAPES_AT = next(_place)  # where in the table of shapes those of its cluster begin, by GPUs
SIZES_AT = next(_place)  # where in the table of sizes its synthetic jobs' begin
SIZES = next(_place)  # how many sizes
WINDOW_KEY = next(_place)  # a WindowKey
SCENE_INTS = next(_place)

_place = count()

# reals of a scene: from LOAD on pairs, between which an episode draws a number
SHARE = next(_place)  # probability of this scene or an earlier one
_pair = count(SHARE + 1, 2)
LOAD = next(_pair)  # work by what all GPUs can do until the last submission; 0: times stay
MEDIAN = next(_pair)  # seconds a synthetic job of one GPU runs, in the middle
SPREAD = next(_pair)  # standard deviation of the logarithm of run times
GROWTH = next(_pair)  # power of the GPUs that run times grow with
SWING = next(_pair)  # how far the rate of arrivals swings about its mean, as a share
NOISE = next(_pair)  # standard deviation of the logarithm of estimates that are drawn
EXCESS = next(_pair)  # logarithm of estimate by run time, in the middle
SCENE_REALS = next(_pair)

SHARES = 64
"""Parts that an episode's jobs are drawn in, perhaps at the same time."""
SUMS = 2 * SHARES
"""What the parts leave for each other: time and work of each."""


class Source(IntEnum):
    """Where a scene's jobs come from."""

    WINDOW = 0
    """Consecutive jobs of a trace; times are stretched to the load."""
    SYNTHETIC = 1
    """Log-normal run times, arrivals whose rate swings."""


class WindowKey(IntEnum):
    """What the window of waiting jobs is sorted by."""

    SUBMIT = 0
    RUN = 1
    AREA = 2
    GPUS = 3


class Stream(IntEnum):
    """What a random number is for: different streams have nothing to do with each other."""

    SCENE = 0
    FIRST = 1
    LOAD = 2
    MEDIAN = 3
    SPREAD = 4
    GROWTH = 5
    SWING = 6
    PERIOD = 7
    PHASE = 8
    NOISE = 9
    EXCESS = 10
    SIZE = 11
    GAP = 12
    RUN_RADIUS = 13
    RUN_ANGLE = 14
    GUESS_RADIUS = 15
    GUESS_ANGLE = 16
