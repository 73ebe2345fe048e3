"""The state of one simulation: one array of integers and one of reals.

Everything that must survive between two calls of the core is in these two arrays, so a simulation
can be stopped after any call, copied, and resumed from them alone; thousands of simulations are
simply two arrays with one more dimension, in whatever layout suits the machine. The core allocates
nothing.

`ints` begins with a header: counters, then fixed settings, then, for every table, the place where
it begins. `ints[ints[NODE_FREE] + node]` reads "free GPUs of this node", and
`reals[ints[END] + job]` "end of this job". `reals` has a header of its own for the clock.

How the rules of real clusters fit in:

- Jobs ask through *shapes* (equal requests share one), so that whether a thousand queued jobs fit
  is answered once. Speeds, tenants, cores and memory are tables over shapes.
- What happened is recorded as *segments*, not as jobs: a preempted job simply has several.
- Tables marked (real) exist only if `IS_REAL` is 1. Without them a job's end is its start plus its
  duration, and nothing of the rest is looked at.
- Events of one instant are handled kind by kind: completions, repairs, failures, arrivals, then one
  scheduling pass.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count
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

FIELDS = 8
"""Numbers on a job's progress that stand side by side: starting a job touches all of them, and
together they fill one line of the processor's cache. `reals[ints[LEFT] + FIELDS * job]`."""

_place = count()

# Counters: what changes from event to event.
NEXT_ARRIVAL = next(_place)  # row of the next job to be submitted
QUEUED = next(_place)  # jobs waiting
RUNNING = next(_place)  # jobs running
FREE_GPUS = next(_place)
COMMITTED = next(_place)  # job chosen by the `commit` discipline and not started yet, or NOTHING
PASSES = next(_place)  # scheduling passes so far
SEGMENTS = next(_place)  # segments recorded
RECORDS = next(_place)  # holdings recorded over all segments
PLAN = next(_place)  # nodes in the placement being planned
PROFILE = next(_place)  # steps in the conservative profile
PROMISES = next(_place)  # entries used in the table of promised nodes
REPLAN = next(_place)  # 1 when the conservative promises must be made anew
PASS_IS_DUE = next(_place)  # 1 after the events of an instant, 2 once the caller knows of it

OUTAGE = next(_place)  # next entry in the list of failures and repairs
WATTS_USED = next(_place)  # watts above idle of the running jobs
SHARED = next(_place)  # GPUs with fractional jobs on them
PLAN_SHARED = next(_place)  # GPU a fractional job is planned to share, or NOTHING
VERSION = next(_place)  # counts changes of what is free
WAITING = next(_place)  # shapes with jobs waiting
ROUND = next(_place)  # counts rounds of backfilling

# Settings: fixed for the simulation.
ORDER = next(_place)  # an OrderKind
DISCIPLINE = next(_place)  # a Discipline
PLACEMENT = next(_place)  # a Placement
SEED = next(_place)
JOBS = next(_place)
SHAPES = next(_place)
NODES = next(_place)
GPUS = next(_place)
TYPES = next(_place)
LEVELS = next(
    _place
)  # numbers of free GPUs a node can have: the most in any node, plus one for none
NODE_WORDS = next(_place)  # words in a bit set of nodes
LEVEL_WORDS = next(_place)  # words in a bit set of levels
GROUPS = next(_place)  # groups of users in a HISTORY order
HISTORY_KEY = next(_place)  # where in `reals` the keys of a HISTORY order begin; 0: there is none
QUEUE_KIND = next(_place)  # a QueueKind
TRUE_ENDS = next(
    _place
)  # 1: the scheduler expects the true ends; both completion heaps are the same table
ONE_ARRIVAL = next(_place)  # 1: an empty queue admits one arrival and schedules before the next
RECORDS_GPUS = next(_place)
STOPS_AT_PASSES = next(_place)  # 1: return to the caller before every pass
PROFILE_ROOM = next(_place)  # steps the profile tables can hold
PROMISE_ROOM = next(_place)  # entries the promise tables can hold
SEGMENT_ROOM = next(_place)  # segments the tables can hold
RECORD_ROOM = next(_place)  # holdings the table can hold
IS_REAL = next(_place)  # 1: the tables marked (real) exist and count
IS_REVIEWED = next(_place)  # 1: running jobs are looked at again every quantum
TENANTS = next(_place)
OUTAGES = next(_place)  # failures and repairs listed
CAP_WATTS = next(_place)
RETRIES = next(_place)
SAVES_ON_PREEMPTION = next(_place)
HAS_SHARING = next(_place)  # 1: some node lets fractional jobs share its GPUs
IS_WEIGHTED = next(_place)  # 1: attained service counts every GPU
THRESHOLDS = next(_place)  # entries in THRESHOLD
KINDS = next(_place)
SIZES = next(_place)  # entries per shape in SCALE
DECIDES = next(_place)  # 1: the caller carries out every pass itself

# Where each table of integers begins in `ints`; its length in brackets.
JOB_SHAPE = next(_place)  # [jobs] shape of the request; NOTHING if it can never be placed
RANK = next(_place)  # [jobs] place in a fixed order (trees)
SLOT = next(_place)  # [jobs] place within the shape, by rank (trees)
SLOT_JOB = next(_place)  # [jobs] job of each slot, shape after shape (trees)
QUEUE = next(_place)  # [jobs] the waiting jobs (list), or each shape's heap of them (heaps)
QUEUE_AT = next(_place)  # [jobs] where each stands in the list or in its heap
GROUP = next(_place)  # [jobs] whose history counts (HISTORY order)
HISTORY_JOBS = next(_place)  # [groups + 1] jobs finished, of each group and of all
SHAPE_GPUS = next(_place)  # [shapes]
SHAPE_CAP = next(_place)  # [shapes] most GPUs on one node
SHAPE_TYPES = next(_place)  # [shapes] bit set of allowed GPU types
SHAPE_SINGLE = next(_place)  # [shapes] 1 if the gang must stay within one node
SHAPE_QUEUED = next(_place)  # [shapes] jobs waiting
SHAPE_HEAD = next(_place)  # [shapes] waiting job of lowest rank, or NOTHING (trees)
SHAPE_FIRST_SLOT = next(_place)  # [shapes] where its part of SLOT_JOB or QUEUE begins
SHAPE_DEPTH = next(_place)  # [shapes] floors of its tree (trees)
SHAPE_FLOORS = next(_place)  # [shapes · MOST_FLOORS] where each floor begins in `reals` (trees)
HEAP = next(_place)  # [gpus] running jobs by end
HEAP_AT = next(_place)  # [jobs]
EXPECTED_HEAP = next(_place)  # [gpus] running jobs by expected end
EXPECTED_HEAP_AT = next(_place)  # [jobs]
FRONTIER = next(_place)  # [gpus + 2] scratch
HELD = next(
    _place
)  # [jobs] first holding of a running job; a holding is named after its lowest GPU
HELD_NEXT = next(_place)  # [gpus] next holding of the same job
HELD_BITS = next(_place)  # [gpus] the GPUs held, as bits of their word in GPU_BITS
HELD_COUNT = next(_place)  # [gpus] how many
BUCKET = next(_place)  # [levels] scratch: first node with so many GPUs available
BUCKET_NEXT = next(_place)  # [nodes] scratch: next node with as many
GPU_NODE = next(_place)  # [gpus]
GPU_BITS = next(_place)  # [words] bit set of free GPUs, node after node
NODE_FREE = next(_place)  # [nodes]
NODE_TYPE = next(_place)  # [nodes]
NODE_FIRST_GPU = next(_place)  # [nodes]
NODE_WORD = next(_place)  # [nodes] its first word in GPU_BITS
LEVEL_NODES = next(_place)  # [types · levels · node words] bit sets of nodes by free GPUs
LEVEL_COUNT = next(_place)  # [types · levels]
LEVEL_MASK = next(_place)  # [types · level words] bit set of levels that have nodes
AVAILABLE = next(_place)  # [nodes] scratch: GPUs a plan may use
EXTRA = next(_place)  # [nodes] scratch: GPUs free beyond the EASY reservation
PLAN_NODE = next(_place)  # [nodes]
PLAN_GPUS = next(_place)  # [nodes]
PROFILE_FREE = next(_place)  # [steps · nodes] (conservative)
PROMISE_AT = next(_place)  # [jobs] first entry in PROMISE_NODE (conservative)
PROMISE_LENGTH = next(_place)  # [jobs] (conservative)
PROMISE_NODE = next(_place)  # [entries] (conservative)
PROMISE_GPUS = next(_place)  # [entries] (conservative)
JOB_SEGMENT = next(_place)  # [jobs] current segment
SEGMENT_JOB = next(_place)  # [segments]
SEGMENT_RECORD = next(_place)  # [segments + 1] first entry in RECORD
RECORD = next(_place)  # [holdings] word in GPU_BITS · 2³² + bits

ARRIVAL_JOB = next(_place)  # [jobs] jobs in order of entering the queue (real)
SHAPE_MILLI = next(_place)  # [shapes] thousandths of a GPU; 1000 for whole ones (real)
SHAPE_GPU_MIB = next(_place)  # [shapes] device memory taken of a shared GPU (real)
SHAPE_CPU = next(_place)  # [shapes] thousandths of a core with every GPU (real)
SHAPE_MIB = next(_place)  # [shapes] host memory with every GPU (real)
SHAPE_TENANT = next(_place)  # [shapes] (real)
SHAPE_WATTS = next(_place)  # [shapes] watts above idle at most (real)
SHAPE_KIND = next(_place)  # [shapes] row in PAIR (real)
SHAPE_LEAST = next(_place)  # [shapes] fewest GPUs of an elastic job (real)
SHAPE_MOST = next(_place)  # [shapes] most GPUs of an elastic job (real)
SHAPE_MIN_NODES = next(_place)  # [shapes] nodes needed on the empty cluster (real)
SHAPE_ROOM = next(_place)  # [shapes] number of its needs: equal needs fit alike (real)
ROOM_VERSION = next(_place)  # [needs] version for which ROOM_FITS holds (real)
ROOM_FITS = next(_place)  # [needs] 1 if it fits now (real)
ROOM_ROUND = next(_place)  # [needs] round of backfilling for which ROOM_BESIDE holds (real)
ROOM_BESIDE = next(_place)  # [needs] 1 if it fits beside the reservation (real)
ROOM_FAILED = next(_place)  # [needs · tenants] when there were no victims for it (real)
WAITING_SHAPE = next(_place)  # [shapes] those with jobs waiting (real)
WAITING_AT = next(_place)  # [shapes] where each stands in that list (real)
SHAPE_EXAMPLE = next(_place)  # [shapes] one of its jobs (real)
SHAPE_PLANNED = next(_place)  # [shapes] version for which SHAPE_SPEED holds (real)
POPULARITY = next(_place)  # [shapes] jobs of the workload (real)
NODE_GPUS = next(_place)  # [nodes] (real)
NODE_CPU = next(_place)  # [nodes] thousandths of a core free (real)
NODE_MIB = next(_place)  # [nodes] host memory free (real)
NODE_RACK = next(_place)  # [nodes] (real)
NODE_SHARING = next(_place)  # [nodes] a Sharing (real)
NODE_DOWN = next(_place)  # [nodes] 1 while away (real)
NODE_JOBS = next(_place)  # [nodes] jobs running on it (real)
EXTRA_CPU = next(_place)  # [nodes] scratch, as EXTRA (real)
EXTRA_MIB = next(_place)  # [nodes] scratch, as EXTRA (real)
TYPE_BINDS = next(_place)  # [types] 1 if cores or memory of its nodes can run out first (real)
TYPE_MIB = next(_place)  # [types] device memory of a GPU (real)
GPU_MILLI = next(_place)  # [gpus] thousandths left on a shared GPU (real)
GPU_MIB = next(_place)  # [gpus] device memory left on a shared GPU (real)
GPU_SHARERS = next(_place)  # [gpus] jobs on a shared GPU (real)
GPU_STAYING = next(_place)  # [gpus] scratch: sharers not yet released in a plan (real)
SHARER = next(_place)  # [gpus] first job on a shared GPU (real)
SHARER_NEXT = next(_place)  # [jobs] next job on the same GPU (real)
SHARED_GPU = next(_place)  # [jobs] shared GPU a running job is on, or NOTHING (real)
SHARED_LIST = next(_place)  # [gpus] the shared GPUs (real)
SHARED_AT = next(_place)  # [gpus] where each stands in that list (real)
TENANT_USED = next(_place)  # [tenants] GPUs held (real)
TENANT_CPU = next(_place)  # [tenants] thousandths of a core held (real)
TENANT_MIB = next(_place)  # [tenants] host memory held (real)
TENANT_TAKEN = next(_place)  # [tenants] scratch: GPUs of victims listed so far (real)
GUARANTEED = next(_place)  # [tenants] GPUs (real)
LIMIT = next(_place)  # [tenants] GPUs (real)
OUTAGE_NODE = next(_place)  # [outages] (real)
OUTAGE_IS_FAILURE = next(_place)  # [outages] 1 for a failure, 0 for a repair (real)
SIZE = next(_place)  # [jobs] GPUs held now (real)
ROUNDS = next(_place)  # [jobs] times started (real)
FAILURES = next(_place)  # [jobs] times stopped by a failing node (real)
VICTIM = next(_place)  # [running jobs] scratch: jobs that may be stopped (real)
VICTIM_AT = next(_place)  # [jobs] scratch: where each stands in VICTIM (real)
CHOSEN = next(_place)  # [running jobs] scratch: those that will be, in order (real)
DESTINATION = next(_place)  # [running jobs] scratch: where each goes, or GPUs it gives (real)
NODE_DONE = next(_place)  # [nodes] scratch: 1 once enough victims are found there (real)
SEGMENT_CAUSE = next(_place)  # [segments] a Cause (real)

# Where each table of reals begins in `reals`; all times in seconds.
SUBMIT = next(_place)  # [jobs]
DURATION = next(_place)  # [jobs]
EXPECTED = next(_place)  # [jobs] run time the scheduler believes
TREE = next(_place)  # [floors of all shapes] least expected run time below (trees)
OFFSET = next(_place)  # [jobs] key, or its constant part (list and heaps)
RATE = next(_place)  # [jobs] change of the key per second of age (AGEING)
SINCE = next(_place)  # [jobs] second from which age counts (AGEING)
KEY = next(_place)  # [jobs] scratch (conservative)
HISTORY_S = next(_place)  # [groups + 1] run time finished, of each group and of all
SHAPE_LIMIT = next(_place)  # [shapes] longest expected run time that may start now
END = next(_place)  # [jobs]
EXPECTED_END = next(_place)  # [jobs]
PROFILE_TIME = next(_place)  # [steps] (conservative)
PROMISE = next(_place)  # [jobs] promised start (conservative)
SEGMENT_START = next(_place)  # [segments]
SEGMENT_END = next(_place)  # [segments]
ARRIVAL = next(_place)  # [jobs] second of entering the queue (real)
VALUE = next(_place)  # [jobs] expected run time of a waiting job from here on
ROOM_FAILED_KEY = next(_place)  # [needs · tenants] least key for which that is so (real)
SHAPE_SPEED = next(_place)  # [shapes] speed where its placement would put it now (real)
SPEED = next(_place)  # [shapes · types] work per second (real)
NODE_FACTOR = next(_place)  # [shapes] (real)
RACK_FACTOR = next(_place)  # [shapes] (real)
SCALE = next(_place)  # [shapes · sizes] (real)
PAIR = next(_place)  # [kinds · kinds] (real)
TYPE_WATTS = next(_place)  # [types] (real)
WAKE_W = next(_place)  # [nodes] (real)
LEFT = next(_place)  # [jobs · fields] work left when last settled (real)
SAVED = next(_place)  # [jobs · fields] work left at the last checkpoint (real)
UPDATED = next(_place)  # [jobs · fields] second of the last settling (real)
ORIGIN = next(_place)  # [jobs · fields] second from which it makes progress (real)
BASE_SPEED = next(_place)  # [jobs · fields] speed of the GPUs it has, with distance and size (real)
PROGRESS = next(_place)  # [jobs · fields] work per second now (real)
OVERHEAD = next(_place)  # [jobs · fields] seconds without progress at its (next) start (real)
LAST_SAVE = next(_place)  # [jobs · fields] second of the segment's last checkpoint (real)
HELD_S = next(_place)  # [jobs] seconds of its ended segments (real)
USAGE = next(_place)  # [tenants] GPU-seconds used (real)
OUTAGE_TIME = next(_place)  # [outages] (real)
THRESHOLD = next(_place)  # [thresholds] (real)
COST = next(_place)  # [jobs] scratch: what stopping it would destroy (real)
NODE_COST = next(_place)  # [nodes] scratch: cost of the victims found there (real)
SEGMENT_WASTED = next(_place)  # [segments] (real)

HEADER = next(_place)
"""Length of the header of `ints`."""

# The header of `reals`.
_place = count()

NOW = next(_place)
CLIP_LOW = next(_place)  # bounds of the age in an AGEING order
CLIP_HIGH = next(_place)
NEXT_REVIEW = next(_place)  # second of the next review of running jobs
LAST_INSTANT = next(_place)  # second up to which USAGE is booked
EVERY_S = next(_place)
SAVE_S = next(_place)
RESTORE_S = next(_place)
QUANTUM_S = next(_place)
EFFICIENCY = next(_place)  # share of running time not spent saving
TOTAL_CPU = next(_place)  # thousandths of a core in all nodes whose cores are known
TOTAL_MIB = next(_place)
EXTRA_WATTS = next(_place)  # watts beyond the EASY reservation
REALS_HEADER = next(_place)


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
    REMAINING = 4
    """Expected work left."""
    ATTAINED = 5
    """Seconds (or GPU-seconds) of service so far, or the number of thresholds they have passed."""
    SHARE = 6
    """The tenant's dominant share of the cluster now."""
    USAGE = 7
    """GPU-seconds the tenant has used so far, by what it is guaranteed."""


class Discipline(IntEnum):
    """What happens when the next job does not fit."""

    STRICT = 0
    SKIP = 1
    COMMIT = 2
    EASY = 3
    CONSERVATIVE = 4
    PREEMPTIVE = 5
    TIMESLICE = 6
    ELASTIC = 7
    DEFRAG = 8


class Placement(IntEnum):
    """Which nodes a job gets."""

    FIRST = 0
    PACK = 1
    SPREAD = 2
    RANDOM = 3
    TIER = 4
    DEFRAG = 5
    LOADBALANCE = 6
    FGD = 7
    POWER = 8
    FASTEST = 9


class Status(IntEnum):
    """Why the core returned to its caller."""

    DONE = 0
    PASS_DUE = 1
    NEEDS_ROOM = 2
