"""The numpy array types of the columnar merge, and a checked conversion of integers."""

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def integers(numbers: Sequence[int]) -> Ints:
    """Return integers as an array. Raises OverflowError for other types and beyond 64 bits."""
    try:
        # Three times as fast as array("q", numbers). numpy would accept numbers that are not integers.
        return np.frombuffer(struct.pack(f"{len(numbers)}q", *numbers), np.int64)
    except struct.error as error:
        raise OverflowError(str(error)) from None
