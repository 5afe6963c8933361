"""The times at which a simulated node restarts and does not answer: a fixed schedule without a beginning."""

from dataclasses import dataclass
from math import floor
from random import Random

# The machines' boot time, 2020-01-01, give or take a month.
BOOT_TIME_S = 1_577_836_800.0
BOOT_SPREAD_S = 30 * 86400.0


@dataclass(frozen=True)
class Disturbances:
    """How often a node restarts and stops answering, and for how long it is then silent."""

    restart_every_s: float = 4 * 3600.0
    restart_s: float = 40.0
    silent_every_s: float = 3600.0
    silent_s: float = 8.0


DEFAULT = Disturbances()
CALM = Disturbances(restart_every_s=10 * 365 * 86400.0, restart_s=0.0, silent_s=0.0)
"""No disturbances, except that each JVM has started at some time in the last ten years."""


@dataclass(frozen=True)
class Lifecycle:
    """A node's schedule; the offsets distribute the events of several nodes over the period."""

    disturbances: Disturbances
    boot_s: float
    restart_offset_s: float
    silent_offset_s: float

    def start_s(self, time_s: float) -> float:
        """Return the start time of the JVM that runs at `time_s`, or that starts next if none is running."""
        return self._restart_begin_s(time_s) + self.disturbances.restart_s

    def number_of_starts(self, time_s: float) -> int:
        """Return a number that identifies the JVM of `start_s`."""
        return floor((time_s - self.restart_offset_s) / self.disturbances.restart_every_s)

    def runs(self, time_s: float) -> bool:
        """Return whether a JVM is running."""
        return time_s >= self.start_s(time_s)

    def answers(self, time_s: float) -> bool:
        """Return whether the node answers: its JVM is running and does not hang."""
        since_silent_s = (time_s - self.silent_offset_s) % self.disturbances.silent_every_s
        return self.runs(time_s) and since_silent_s >= self.disturbances.silent_s

    def _restart_begin_s(self, time_s: float) -> float:
        return self.number_of_starts(time_s) * self.disturbances.restart_every_s + self.restart_offset_s


def lifecycle(generator: Random, disturbances: Disturbances) -> Lifecycle:
    """Return a schedule with random offsets."""
    return Lifecycle(
        disturbances,
        BOOT_TIME_S - generator.uniform(0, BOOT_SPREAD_S),
        generator.uniform(0, disturbances.restart_every_s),
        generator.uniform(0, disturbances.silent_every_s),
    )
