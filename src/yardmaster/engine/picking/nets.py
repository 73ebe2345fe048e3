"""A learned policy's preferences for one observation, computed without any library.

All arithmetic is in 32-bit floats and in a fixed order, so that the same weights prefer the same
job on every machine. What makes it quick: only legal actions are scored; inputs that are 0 are
skipped, which after ReLU is every other one; and the innermost loops run over the units of a layer,
which compilers turn into wide instructions without changing any sum.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from yardmaster.engine.compilation import bare, entry_point, hot_kernel, kernel
from yardmaster.engine.picking.net_row import (
    ADD_GLOBALS,
    ARCHITECTURE,
    BIAS_AT,
    CONTEXT_AT,
    DIM,
    FEATURES,
    FIRST_AT,
    FOUND,
    GLOBALS,
    GLOBALS_LIST,
    GPU,
    GPUS_AT,
    HEAD,
    HEAD_COUNT,
    HIDDEN,
    HIDDEN_COUNT,
    INPUTS,
    IS_GATED,
    IS_POOLED,
    JOB,
    JOBS_AT,
    LAST,
    LAST_NORM_AT,
    LAYER,
    LENGTH,
    LIKENESS_AT,
    NOOP_AT,
    NOOP_BIAS_AT,
    NORM_AT,
    NUMBERS_AT,
    OF_CONTEXT,
    OF_TOKEN,
    OUTPUTS,
    PICKS,
    PICKS_AT,
    POOL_AT,
    QUERY,
    SECOND_AT,
    SLOTS,
    SPARE_AT,
    STATE,
    STATE_COUNT,
    STATE_TOKEN,
    SUPPORT_AT,
    TOKENS_AT,
    TURNED_AT,
    UNITS,
    WEIGHT_AT,
    WIDTH,
    WINDOW,
    Architecture,
)
