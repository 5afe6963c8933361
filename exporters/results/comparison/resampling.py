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
    blocks = ceil(count / block)
    starts = generator.integers(0, count - block + 1, (blocks, resamples))
    cumulative = np.vstack([np.zeros(amounts.shape[1]), amounts.cumsum(axis=0)])
    whole = cumulative[block:] - cumulative[: count - block + 1]
    # How often each resample contains the block that begins at each interval; its last block is added separately.
    cells = starts[:-1] + np.arange(resamples) * len(whole)
    repetitions = np.bincount(cells.ravel(), minlength=resamples * len(whole)).reshape(resamples, len(whole))
    ends = starts[-1] + count - (blocks - 1) * block
    sums: Array = repetitions.astype(float) @ whole + cumulative[ends] - cumulative[starts[-1]]
    return sums
