"""The faults of the soak test and their timing."""

from dataclasses import dataclass

FAULTS = (
    "strangers",
    "store_fails",
    "node_hangs",
    "store_hangs_up",
    "node_restarts",
    "node_goes",
    "disk_is_full",
    "store_is_a_black_hole",
    "settings_change",
    "agent_is_stopped",
    "store_is_busy",
)
"""The names of the `Soak` methods that cause the faults, in order."""


@dataclass(frozen=True)
class Pace:
    """The timing of the rounds; each consists of a fault and time to recover."""

    rounds: int
    fault_s: float
    rest_s: float

    @property
    def round_s(self) -> float:
        return self.fault_s + self.rest_s

    @property
    def total_s(self) -> float:
        return self.rounds * self.round_s
