"""The last ticks in memory, for those who follow live: sinks that are not behind, and whoever listens at the API."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition

from collector.journal.writer import Position
from collector.model.identity import Identity
from collector.model.sample import Sample
from collector.model.snapshot import Tick

# Each takes as much as a tenth of a megabyte.
KEPT = 20


@dataclass(frozen=True)
class Moment:
    """One tick.

    number    of the tick, one after the other since the program began.
    identity  who the node is known to be.
    sample    what happened in the interval that it ends; None for the first.
    position  where in the journal it is.
    """

    number: int
    tick: Tick
    identity: Identity
    sample: Sample | None
    position: Position


class RecentTicks:
    """Takes every tick from one thread, and hands the last ones to many."""

    def __init__(self, kept: int = KEPT) -> None:
        self._moments: deque[Moment] = deque(maxlen=kept)
        self._news = Condition()
        self._listeners: list[Callable[[Moment], None]] = []
        self._number = 0

    def add(self, tick: Tick, identity: Identity, sample: Sample | None, position: Position) -> None:
        """Take a tick and tell everybody."""
        with self._news:
            self._number += 1
            moment = Moment(self._number, tick, identity, sample, position)
            self._moments.append(moment)
            self._news.notify_all()
            listeners = list(self._listeners)
        for listener in listeners:
            listener(moment)

    def break_off(self) -> None:
        """Forget the ticks: what comes next does not follow on them, and is to be taken from the journal."""
        with self._news:
            self._moments.clear()
            self._number += 1

    @property
    def last(self) -> Moment | None:
        """The newest tick; None before the first."""
        with self._news:
            return self._moments[-1] if self._moments else None

    def at(self, time_s: float) -> int | None:
        """Return the number of the tick with this time; None when it is not among the last ones."""
        with self._news:
            return next((each.number for each in reversed(self._moments) if each.tick.time_s == time_s), None)

    def after(self, number: int) -> list[Moment] | None:
        """Return the ticks that came after that one; None when some of them are not kept any more."""
        with self._news:
            if self._moments and number + 1 < self._moments[0].number:
                return None
            return [moment for moment in self._moments if moment.number > number]

    def kept(self) -> list[Moment]:
        """Return the ticks that are kept, the oldest first."""
        with self._news:
            return list(self._moments)

    def wait(self, number: int, timeout_s: float) -> bool:
        """Return whether there is a tick after that one, as soon as there is."""
        with self._news:
            return self._news.wait_for(lambda: self._number > number, timeout_s)

    def listen(self, listener: Callable[[Moment], None]) -> Callable[[], None]:
        """Have `listener` called with every tick, in the thread that adds it; return what ends that."""
        with self._news:
            self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
