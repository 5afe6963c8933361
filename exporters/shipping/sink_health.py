"""How it goes with a sink."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SinkHealth:
    """One sink, since the program began.

    up              whether the store took what it was sent last.
    lag_s           how far what it has is behind what there is.
    points          that it has taken.
    failures        attempts that it did not take.
    refused_points  that it will never take: they are written aside.
    lost_ticks      that were gone from the journal before they could be sent: at most so many.
    why             what is wrong, in a line; "" when nothing is.
    """

    name: str
    up: bool = True
    lag_s: float = 0.0
    points: int = 0
    failures: int = 0
    refused_points: int = 0
    lost_ticks: int = 0
    why: str = ""
