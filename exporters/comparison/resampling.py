"""Resampling of blocks of consecutive intervals within a run."""

from math import ceil

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def resampled_sums(generator: np.random.Generator, amounts: Array, block: int, resamples: int) -> Array:
    """Return the sums of resamples of `amounts`, an array of (intervals, amounts), as (resamples, amounts).

    A resample of the moving-block bootstrap (Künsch 1989) consists of random blocks of `block` consecutive intervals,
    and its last block is shortened so that the resample has as many intervals as `amounts`.
    """
    count = len(amounts)
    cumulative = np.vstack([np.zeros(amounts.shape[1]), amounts.cumsum(axis=0)])
    sums = np.zeros((resamples, amounts.shape[1]))
    blocks = ceil(count / block)
    for number in range(blocks):
        length = min(block, count - number * block)
        starts = generator.integers(0, count - block + 1, resamples)
        sums += cumulative[starts + length] - cumulative[starts]
    return sums
