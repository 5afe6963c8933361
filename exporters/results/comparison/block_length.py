"""The length of blocks for a bootstrap of a time series."""

from math import ceil, log10, sqrt

import numpy as np
import numpy.typing as npt

SAFETY = 2.0
"""Blocks are this many times as long as the optimal length, because that usually underestimates the variance."""
MIN_BLOCKS = 5
"""A series has at least this many blocks; a block is at least as long as the cube root of the series' length."""
# Constants of Politis and White.
_SIGNIFICANCE = 2.0
_MIN_WINDOW = 5


def block_length(values: npt.NDArray[np.float64]) -> int:
    """Return the number of consecutive values in a block: SAFETY times the automatic length of Politis and White.

    Politis, White: Automatic block-length selection for the dependent bootstrap, Econometric Reviews 23 (2004), with
    the correction of Patton, Politis and White (2009), for blocks of a fixed length.
    """
    count = len(values)
    longest = max(count // MIN_BLOCKS, 1)
    shortest = min(round(float(count ** (1 / 3))) + 1, longest)
    centred = values - values.mean()
    variance = float(centred @ centred) / count
    if count < 2 * _MIN_WINDOW or not variance:
        return shortest
    covariances = _covariances(centred, min(2 * _last_lag(count), count - 1))
    lags = 2 * _correlated_lags(covariances / variance, count)
    lag = np.arange(1, min(lags, len(covariances) - 1) + 1)
    weighted = np.clip(2 * (1 - lag / lags), 0, 1) * covariances[lag]
    spectrum = variance + 2 * float(weighted.sum())
    slope = 2 * float((lag * weighted).sum())
    if spectrum <= 0:
        return longest
    optimum = float((1.5 * (slope / spectrum) ** 2 * count) ** (1 / 3))
    return min(max(ceil(SAFETY * optimum), shortest), longest)


def _last_lag(count: int) -> int:
    """Return the largest lag that is examined."""
    return ceil(sqrt(count)) + _window(count)


def _window(count: int) -> int:
    return max(_MIN_WINDOW, ceil(sqrt(log10(count))))


def _covariances(centred: npt.NDArray[np.float64], last_lag: int) -> npt.NDArray[np.float64]:
    """Return the autocovariances from lag 0 to `last_lag`."""
    count = len(centred)
    size = 1 << (count + last_lag).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    return np.fft.irfft(power, size)[: last_lag + 1] / count


def _correlated_lags(correlations: npt.NDArray[np.float64], count: int) -> int:
    """Return the lag after which a window of correlations is insignificant, or the largest lag that is examined."""
    window, last_lag = _window(count), min(_last_lag(count), len(correlations) - 1)
    is_small = np.abs(correlations[1 : last_lag + 1]) < _SIGNIFICANCE * sqrt(log10(count) / count)
    for lag in range(len(is_small) - window + 1):
        if is_small[lag : lag + window].all():
            return max(lag, 1)
    return last_lag
