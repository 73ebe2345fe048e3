"""The state of one simulation: one array of integers and one of reals.

Everything that must survive between two calls of the core is in these two arrays, so a simulation
can be stopped after any call, copied, and resumed from them alone; thousands of simulations are
simply two arrays with one more dimension, in whatever layout suits the machine. The core allocates
nothing.

`ints` begins with a header: counters, then fixed settings, then, for every table, the place where
it begins. `ints[ints[NODE_FREE] + node]` reads "free GPUs of this node", and
`reals[ints[END] + job]` "end of this job". `reals` has a header of its own for the clock.

Room left for what comes next:

- Jobs ask through *shapes* (equal requests share one), so that whether a thousand queued jobs fit
  is answered once. A new kind of constraint is a new table over shapes.
- What happened is recorded as *segments*, not as jobs: a preempted job simply has several.
- A job's end is computed where it starts, from its duration and the speed it gets there; the two
  completion heaps can remove any job, not only the first, so a job can be stopped before its end.
- Nodes enter and leave the index of free nodes one at a time (`unlist`, `enlist`), which is what
  a node failure or a repair does.
- Events of one instant are handled kind by kind: completions, then (reserved) repairs and
  failures, then arrivals, then one scheduling pass.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol


class Ints(Protocol):
    """A row of integers: a NumPy array, or a memoryview of one when the core runs uncompiled."""

    def __getitem__(self, place: int, /) -> int: ...
    def __setitem__(self, place: int, value: int, /) -> None: ...
    def __len__(self) -> int: ...


class Reals(Protocol):
    """A row of floating-point numbers, likewise."""

    def __getitem__(self, place: int, /) -> float: ...
    def __setitem__(self, place: int, value: float, /) -> None: ...
    def __len__(self) -> int: ...


NOTHING = -1
"""No job, no node, end of a chain."""

# Counters: what changes from event to event.
NEXT_ARRIVAL = 0  # row of the next job to be submitted
QUEUED = 1  # jobs waiting
RUNNING = 2  # jobs running
FREE_GPUS = 3
COMMITTED = 4  # job chosen by the `commit` discipline and not started yet, or NOTHING
PASSES = 5  # scheduling passes so far
SEGMENTS = 6  # segments recorded
RECORDS = 7  # holdings recorded over all segments
PLAN = 8  # nodes in the placement being planned
PROFILE = 9  # steps in the conservative profile
PROMISES = 10  # entries used in the table of promised nodes
REPLAN = 11  # 1 when the conservative promises must be made anew

# Settings: fixed for the simulation.
ORDER = 12  # an OrderKind
DISCIPLINE = 13  # a Discipline
PLACEMENT = 14  # a Placement
SEED = 15
JOBS = 16
SHAPES = 17
NODES = 18
TYPES = 19
LEVELS = 20  # numbers of free GPUs a node can have: the most in any node, plus one for none
NODE_WORDS = 21  # words in a bit set of nodes
LEVEL_WORDS = 22  # words in a bit set of levels
GROUPS = 23  # groups of users in a HISTORY order
QUEUE_KIND = 24  # a QueueKind
TRUE_ENDS = 25  # 1: the scheduler expects the true ends; both completion heaps are the same table
ONE_ARRIVAL = 26  # 1: an empty queue admits one arrival and schedules before the next
RECORDS_GPUS = 27
PROFILE_ROOM = 28  # steps the profile tables can hold
PROMISE_ROOM = 29  # entries the promise tables can hold

# Where each table of integers begins in `ints`; its length in brackets.
JOB_SHAPE = 30  # [jobs] shape of the request; NOTHING if it can never be placed
RANK = 31  # [jobs] place in a fixed order (trees)
SLOT = 32  # [jobs] place within the shape, by rank (trees)
SLOT_JOB = 33  # [jobs] job of each slot, shape after shape (trees)
QUEUE = 34  # [jobs] the waiting jobs (list), or each shape's heap of them (heaps)
QUEUE_AT = 35  # [jobs] where each stands in the list or in its heap
GROUP = 36  # [jobs] whose history counts (HISTORY order)
HISTORY_JOBS = 37  # [groups + 1] jobs finished, of each group and of all
SHAPE_GPUS = 38  # [shapes]
SHAPE_CAP = 39  # [shapes] most GPUs on one node
SHAPE_TYPES = 40  # [shapes] bit set of allowed GPU types
SHAPE_SINGLE = 41  # [shapes] 1 if the gang must stay within one node
SHAPE_QUEUED = 42  # [shapes] jobs waiting
SHAPE_HEAD = 43  # [shapes] waiting job of lowest rank, or NOTHING (trees)
SHAPE_FIRST_SLOT = 44  # [shapes] where its part of SLOT_JOB or QUEUE begins
SHAPE_DEPTH = 45  # [shapes] floors of its tree (trees)
SHAPE_FLOORS = 46  # [shapes · MOST_FLOORS] where each floor begins in `reals` (trees)
HEAP = 47  # [gpus] running jobs by end
HEAP_AT = 48  # [jobs]
EXPECTED_HEAP = 49  # [gpus] running jobs by expected end
EXPECTED_HEAP_AT = 50  # [jobs]
FRONTIER = 51  # [gpus + 2] scratch
HELD = 52  # [jobs] first holding of a running job; a holding is named after its lowest GPU
HELD_NEXT = 53  # [gpus] next holding of the same job
HELD_BITS = 92  # [gpus] the GPUs held, as bits of their word in GPU_BITS
HELD_COUNT = 93  # [gpus] how many
BUCKET = 94  # [levels] scratch: first node with so many GPUs available
BUCKET_NEXT = 95  # [nodes] scratch: next node with as many
GPU_NODE = 54  # [gpus]
GPU_BITS = 55  # [words] bit set of free GPUs, node after node
NODE_FREE = 56  # [nodes]
NODE_TYPE = 57  # [nodes]
NODE_FIRST_GPU = 58  # [nodes]
NODE_WORD = 59  # [nodes] its first word in GPU_BITS
LEVEL_NODES = 60  # [types · levels · node words] bit sets of nodes by free GPUs
LEVEL_COUNT = 61  # [types · levels]
LEVEL_MASK = 62  # [types · level words] bit set of levels that have nodes
AVAILABLE = 63  # [nodes] scratch: GPUs a plan may use
EXTRA = 64  # [nodes] scratch: GPUs free beyond the EASY reservation
PLAN_NODE = 65  # [nodes]
PLAN_GPUS = 66  # [nodes]
PROFILE_FREE = 67  # [steps · nodes] (conservative)
PROMISE_AT = 68  # [jobs] first entry in PROMISE_NODE (conservative)
PROMISE_LENGTH = 69  # [jobs] (conservative)
PROMISE_NODE = 70  # [entries] (conservative)
PROMISE_GPUS = 71  # [entries] (conservative)
JOB_SEGMENT = 72  # [jobs] current segment
SEGMENT_JOB = 73  # [segments]
SEGMENT_RECORD = 74  # [segments + 1] first entry in RECORD
RECORD = 75  # [holdings] word in GPU_BITS · 2³² + bits

# Where each table of reals begins in `reals`; all times in seconds.
SUBMIT = 76  # [jobs]
DURATION = 77  # [jobs]
EXPECTED = 78  # [jobs] run time the scheduler believes
TREE = 79  # [floors of all shapes] least expected run time below (trees)
OFFSET = 80  # [jobs] key, or its constant part (list and heaps)
RATE = 81  # [jobs] change of the key per second of age (AGEING)
SINCE = 82  # [jobs] second from which age counts (AGEING)
KEY = 83  # [jobs] scratch (conservative)
HISTORY_S = 84  # [groups + 1] run time finished, of each group and of all
SHAPE_LIMIT = 85  # [shapes] longest expected run time that may start now
END = 86  # [jobs]
EXPECTED_END = 87  # [jobs]
PROFILE_TIME = 88  # [steps] (conservative)
PROMISE = 89  # [jobs] promised start (conservative)
SEGMENT_START = 90  # [segments]
SEGMENT_END = 91  # [segments]

HEADER = 96
"""Length of the header of `ints`."""

# The header of `reals`.
NOW = 0
CLIP_LOW = 1  # bounds of the age in an AGEING order
CLIP_HIGH = 2
REALS_HEADER = 3


class QueueKind(IntEnum):
    """How the waiting jobs are kept; chosen once per simulation, by order and discipline."""

    LIST = 0
    """One list, scanned in full for every job started: for keys that change."""
    HEAPS = 1
    """One heap per shape: for fixed keys where only the first of a shape can be next."""
    TREES = 2
    """One tree per shape: for fixed keys where short jobs may overtake (EASY)."""


class OrderKind(IntEnum):
    """How a waiting job's key comes about; the lowest key goes first."""

    FIXED = 0
    """The key never changes while the job waits."""
    AGEING = 1
    """offset + rate · clip(now − since, low, high)."""
    SHUFFLED = 2
    """Drawn anew for every scheduling pass."""
    HISTORY = 3
    """GPUs × mean run time of the user's finished jobs, looked up on arrival."""


class Discipline(IntEnum):
    """What happens when the next job does not fit."""

    STRICT = 0
    SKIP = 1
    COMMIT = 2
    EASY = 3
    CONSERVATIVE = 4


class Placement(IntEnum):
    """Which nodes a job gets."""

    FIRST = 0
    PACK = 1
    SPREAD = 2
    RANDOM = 3


class Status(IntEnum):
    """Why the core returned to its caller."""

    DONE = 0
    PASS_DUE = 1
    NEEDS_ROOM = 2
