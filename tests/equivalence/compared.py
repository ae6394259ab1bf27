"""Verdicts on numbers that are given here instead of programs."""

import numpy as np

from fusionlab.equivalence.check import compare
from fusionlab.equivalence.samples import Sample


def runner(values):
    """``values`` whatever the inputs are, or a function of the first of them."""
    return lambda arrays: [np.asarray(values(arrays[0]) if callable(values) else values)]


def compared(truth, original, rewritten, rewritten64=None, x=(), **more):
    """The verdict on one output at the inputs ``x``; float64 of what is rewritten is truth if it is not given."""
    wide = truth if rewritten64 is None else rewritten64
    names = ("truth", "original", "rewritten", "rewritten_float64")
    runs = dict(zip(names, map(runner, (truth, original, rewritten, wide)), strict=True))
    return compare([Sample("seed 1", (np.asarray(x),))], walkers=None, **runs, **more)


def in_float32(truth, original, rewritten, rewritten64=None):
    """``compared`` of numbers in float64, in float32 twice, and in float64."""
    truth, wide = (None if array is None else np.asarray(array, np.float64) for array in (truth, rewritten64))
    return compared(truth, np.asarray(original, np.float32), np.asarray(rewritten, np.float32), wide)
