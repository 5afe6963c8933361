"""The knee of a curve of rate against latency: where the latency leaves its plateau."""

from collections.abc import Sequence
from math import log

MIN_POINTS = 5
MIN_RISE = 2.0
"""Beyond a knee, the latency rises to at least this many times that at the knee."""


def knee_of(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the rate at the knee of points of rate and latency; None if there are too few points, or no knee.

    The knee is the point furthest below the line from the first point to the last, with both axes scaled to [0, 1]
    (Satopää et al., Finding a Kneedle in a Haystack, 2011). Latencies are on a logarithmic scale, so that a single very
    high one does not make all others look alike.
    """
    ordered = sorted(points)
    latencies = [latency for _, latency in ordered]
    if len(ordered) < MIN_POINTS or not 0 < min(latencies) < max(latencies):
        return None
    first, last = ordered[0][0], ordered[-1][0]
    low, high = log(min(latencies)), log(max(latencies))
    distances = [(rate - first) / (last - first) - (log(latency) - low) / (high - low) for rate, latency in ordered]
    knee = distances.index(max(distances))
    # At the lowest rate, the latency may be high because the nodes are not warm.
    has_risen = max(latencies[knee:]) >= MIN_RISE * latencies[knee]
    return ordered[knee][0] if distances[knee] > 0 and has_risen else None
