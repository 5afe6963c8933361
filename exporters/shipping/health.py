"""How a sink fares, as the agent says of itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SinkHealth:
    """One sink, since the agent began.

    name    what the sink calls itself.
    up      whether it took what it was sent last.
    lag_s   how old the oldest tick is that it does not have yet.
    points  that it has taken; `refused_points` are those that it will never take.
    failures    attempts that failed.
    lost_ticks  that were gone from the journal before they could be sent.
    why     why it is not up, in one line; "" when it is.
    """

    name: str
    up: bool = True
    lag_s: float = 0.0
    points: int = 0
    failures: int = 0
    refused_points: int = 0
    lost_ticks: int = 0
    why: str = ""
