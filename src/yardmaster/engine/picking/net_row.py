"""Where everything stands in the row of integers that describes a network.

A network is two rows: integers, which say what it is and where things begin, and its weights. Names
that end in `_AT` are places in the observation, in the weights or in the scratch row. A *layer* is
four integers, and the name of a layer or of a chain of layers says where in the row they begin.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count


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
LENGTH = next(_place)
GLOBALS = next(_place)  # number of globals
GLOBALS_LIST = next(_place)  # where in this row their places in the observation begin

# what comes out
OUTPUTS = next(_place)  # numbers per action: 1, or atoms of a distribution
IS_POOLED = next(_place)  # 1: the value of the state, from all embeddings, shapes the distribution
WIDTH = next(_place)  # numbers of an embedding
DIM = next(_place)  # numbers of a token in attention
IS_GATED = next(_place)  # 1: the embedding comes out of ReLU, so that many of its numbers are 0

# layers, or chains of them (0 layers: the chain is empty)
OF_TOKEN = next(_place)  # first layer's part for a token
OF_CONTEXT = next(_place)  # first layer's part for the context
HIDDEN = next(_place)
HIDDEN_COUNT = next(_place)
HEAD = next(_place)  # hidden layers of the head
HEAD_COUNT = next(_place)
LAST = next(_place)
STATE = next(_place)  # layers from the pooled embedding to the state's numbers
STATE_COUNT = next(_place)
JOB = next(_place)  # two layers: a job's features to its token
GPU = next(_place)  # two layers: a GPU slot's number to its token
STATE_TOKEN = next(_place)  # two layers: globals to a token
ADD_GLOBALS = next(_place)
QUERY = next(_place)  # a token to what it looks for
FOUND = next(_place)  # the mix of what it found to what is added to the token

# in the weights
NOOP_AT = next(_place)  # the learned token of the no-op
NOOP_BIAS_AT = next(_place)
SUPPORT_AT = next(_place)  # what the atoms stand for
NORM_AT = next(_place)  # scale, then shift
LAST_NORM_AT = next(_place)

# in the scratch row
PICKS_AT = next(_place)  # the inputs that are not 0: their places, then their values
PICKS = next(_place)  # room for so many
CONTEXT_AT = next(_place)  # what the context adds to the first layer
FIRST_AT = next(_place)  # two rows that take turns to hold what layers make
SECOND_AT = next(_place)
POOL_AT = next(_place)
NUMBERS_AT = next(_place)  # what comes out, per action
TOKENS_AT = next(_place)  # what attention looks at, token by token
TURNED_AT = next(_place)  # the same, number by number
LIKENESS_AT = next(_place)
SPARE_AT = next(_place)  # a token that must outlive others

NET_HEADER = next(_place)

# a layer
INPUTS, UNITS, WEIGHT_AT, BIAS_AT = range(4)
LAYER = 4
