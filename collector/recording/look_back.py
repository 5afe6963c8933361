"""How far before a time range a reader of a journal must begin, so that the first tick of the range has rates."""

# A rate needs two readings. Those of a slow source, such as nodetool, are up to SLOWEST_S apart.
SLOWEST_S = 150.0
INTERVALS = 2


def look_back_s(interval_s: float) -> float:
    """Return the time to look back in a journal with a tick every `interval_s`."""
    return max(SLOWEST_S, INTERVALS * interval_s)
