"""The numpy array types of the columnar merge, and a checked conversion of integers."""

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def integers(numbers: Sequence[int]) -> Ints:
    """Return integers as an array. Raises TypeError for other types, and OverflowError beyond 64 bits."""
    return np.frombuffer(array("q", numbers), np.int64)
