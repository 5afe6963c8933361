"""The state of a sink, for self-metrics and logs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SinkHealth:
    """The state of one sink, with totals since the program started.

    up              whether the store accepted the last request.
    lag_s           time by which the store lags behind the newest tick.
    points          number of points that the store accepted.
    failures        number of attempts that failed because the store was unavailable.
    refused_points  number of points that the store refused for good, including those not kept in the dead-letter file.
    lost_ticks      number of ticks lost from the journal before they were sent; an upper bound.
    reason          the current problem in one line, or "".
    """

    name: str
    up: bool = True
    lag_s: float = 0.0
    points: int = 0
    failures: int = 0
    refused_points: int = 0
    lost_ticks: int = 0
    reason: str = ""
