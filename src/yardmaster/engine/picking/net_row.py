"""Where everything stands in the row of integers that describes a network.

A network is two rows: integers, which say what it is and where things begin, and its weights. A
third row, of scratch, is room to work in; it begins with zeros. Names that end in `_AT` are places
in the observation, in the weights or in the scratch row. A *layer* is four integers, and the name
of a layer or of a chain of layers says where in the row they begin.

Units are rounded up to a multiple of `LANES` with weights of 0, so that no loop over them has a
rest, and so are inputs that are another layer's units.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count

LANES = 16
"""Units whose sums are built at a time."""
CHUNK = 16
"""Actions that go through the layers together: the weights are then read once for all of them."""


class Architecture(IntEnum):
    """How the network is built."""

    MLP = 0
    KERNEL = 1
    SELF_ATTENTION = 2
    CROSS_ATTENTION = 3


_place = count()

ARCHITECTURE = next(_place)

# the observation
WINDOW = next(_place)  # job tokens; also the number of the no-op
FEATURES = next(_place)  # numbers of a job token
JOBS_AT = next(_place)
SLOTS = next(_place)  # GPU slots
GPUS_AT = next(_place)
LENGTH = next(_place)  # numbers of the observation
GLOBALS = next(_place)  # number of globals
GLOBALS_LIST = next(_place)  # where in this row their places in the observation begin

# widths
SINGLE = next(_place)  # always 1; as a constant, every layer would be compiled once more for it
WIDTH = next(_place)  # of an embedding
DIM = next(_place)  # of a token in attention, without rounding
OUTPUTS = next(_place)  # numbers per action, without rounding: 1, or atoms of a distribution
IS_POOLED = next(_place)  # 1: the value of the state, from all embeddings, shapes distributions
BY_MAJORITY = next(_place)  # 1: the no-op must be likelier than all jobs together

# layers and chains of layers
OF_TOKEN = next(_place)  # first layer's part for a token
OF_CONTEXT = next(_place)  # first layer's part for the context
HIDDEN = next(_place)
HIDDEN_COUNT = next(_place)
HEAD = next(_place)  # hidden layers of the head
HEAD_COUNT = next(_place)
LAST = next(_place)
STATE = next(_place)  # from the pooled embedding to the state's numbers; the last is not gated
STATE_COUNT = next(_place)
JOB = next(_place)  # two layers: a job's features to its token
GPU = next(_place)  # two layers: a GPU slot's number to its token
OF_GLOBALS = next(_place)  # two layers: globals to a token
ADD_GLOBALS = next(_place)
QUERY = next(_place)  # a token to what it looks for
FOUND = next(_place)  # what it found to what is added to the token

# in the weights
NOOP_AT = next(_place)  # the learned token of the no-op
NOOP_BIAS_AT = next(_place)
SUPPORT_AT = next(_place)  # what the atoms stand for
NORM_AT = next(_place)  # scale, then shift
LAST_NORM_AT = next(_place)

# in the scratch row
CHOSEN_AT = next(_place)  # the actions of a chunk
FIRST_AT = next(_place)  # a chunk's rows: what layers take and leave
SECOND_AT = next(_place)  # a chunk's rows: where sums are built
CONTEXT_AT = next(_place)  # what the state adds to every action's sums
POOL_AT = next(_place)  # sum of embeddings
NUMBERS_AT = next(_place)  # what comes out, per action
PLACES_AT = next(_place)  # which row of the next table an action's token is
TOKENS_AT = next(_place)  # what attention looks at, row by row
TURNED_AT = next(_place)  # the same, column by column
LIKENESS_AT = next(_place)  # a chunk's rows: how much each looks at what
MEAN_AT = next(_place)  # a mean of tokens in the making
STATE_AT = next(_place)  # the token of the globals
NOOP_TOKEN_AT = next(_place)  # the token of the no-op where it is not learned

NET_HEADER = next(_place)

# a layer
INPUTS, UNITS, WEIGHT_AT, BIAS_AT = range(4)
LAYER = 4
