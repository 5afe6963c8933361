"""What there is to ship, tick by tick: from the journal, and from memory when a sink is not behind."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Protocol

from collector.journal.follower import Removed
from collector.journal.header import Header
from collector.journal.reader import Entry, read
from collector.journal.tick_order import Finding, Repeated, TickOrder
from collector.journal.writer import Position
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample
from collector.sampling.sample_stream import SampleStream
from exporters.recent_ticks import RecentTick, RecentTicks
from exporters.shipping.checkpoint import Checkpoint
from exporters.shipping.gaps import Gaps

# Some series are read once a minute: two readings of them make a rate.
LOOK_BACK_S = 150.0


class Journal(Protocol):
    """What entries are read from: a `Tail`, or a recording that is finished."""

    def poll(self) -> Iterator[Entry | Finding | Removed]:
        """Yield what has come since the last call. Raises OSError."""

    def position(self, entry: Entry) -> Position:
        """Return where the frame begins of the entry that came last."""

    def close(self) -> None:
        """Let go of the files."""


@dataclass(frozen=True)
class ShipTick:
    """One tick to ship.

    sample    what happened in it; None for the first of a session.
    position  the frame it is in.
    restart   where reading must begin to go on after it.
    """

    time_s: float
    session: str
    catalogue: Mapping[str, Metric]
    identity: Identity
    sample: Sample | None
    position: Position
    restart: Position

    @property
    def checkpoint(self) -> Checkpoint:
        """What to keep on disk when the store has it."""
        return Checkpoint(self.time_s, self.session, self.restart, self.identity)


class Recording:
    """A recording's files, read once, to their end."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Take the files, the oldest first."""
        self._files = deque(files)
        self._sequence = TickOrder()
        self._path: Path | None = None

    def poll(self) -> Iterator[Entry | Finding | Removed]:
        """Yield what is in the files. Raises OSError."""
        while self._files:
            self._path = self._files.popleft()
            yield from self._sequence.filtered(read(self._path))

    def position(self, entry: Entry) -> Position:
        """Return where the frame begins of the entry that came last."""
        return Position(self._path.name if self._path else "", entry.frame)

    def close(self) -> None:
        """Do nothing: files are closed when they are read."""


class Restarts:
    """Where reading must begin to go on after a tick: some frames before it, or where its session began."""

    def __init__(self) -> None:
        self._frames: deque[tuple[int, Position]] = deque()
        self._count = 0

    def begin(self) -> None:
        """Begin a session: what is before it is not needed."""
        self._frames.clear()

    def add(self, position: Position, interval_s: float) -> Position:
        """Take one more tick and the frame it is in; return where to begin to go on after it."""
        # By ticks, for the clock may be set.
        needed = ceil(LOOK_BACK_S / interval_s)
        if not self._frames or self._frames[-1][1] != position:
            self._frames.append((self._count, position))
        self._count += 1
        while len(self._frames) > 1 and self._count - self._frames[1][0] > needed:
            self._frames.popleft()
        return self._frames[0][1]


class TickQueue:
    """Hands out every tick after a checkpoint, in order."""

    def __init__(
        self,
        opened: Callable[[Position | None], Journal],
        begin: Checkpoint | None,
        start: Position | None,
        holes: Gaps,
        recent: RecentTicks | None = None,
        identity: Identity | None = None,
    ) -> None:
        """Take what opens the journal at a place, None for its oldest, and the checkpoint.

        Without a checkpoint it begins at `start`, with a node that is known as `identity`.
        """
        self._opened = opened
        self._holes = holes
        self._recent = recent
        self._held: deque[RecentTick] = deque()
        self._number: int | None = None
        self._head: Header | None = None
        self._last: ShipTick | None = None
        self._done = begin
        self._start = start
        self._first = identity or Identity()
        self._open()

    def next(self) -> ShipTick | None:
        """Return the next tick; None when there is none yet. Raises OSError."""
        if self._number is None and (tick := self._from_disk()) is not None:
            return tick
        return self._from_memory()

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def _open(self, *, seek: bool = True) -> None:
        """Read the journal (again) from where the last tick that was handed out can be found."""
        done = self._done
        self._journal = self._opened(self._start if done is None else done.position)
        self._polled: Iterator[Entry | Finding | Removed] | None = None
        self._sampling: SampleStream | None = None
        self._restarts = Restarts()
        self._identity = self._first if done is None else done.identity
        self._head = None
        self._sought = done if seek else None
        self._number = None
        self._holes.begin(done)

    def _from_disk(self) -> ShipTick | None:
        """Return the next tick of the journal; None at its end."""
        while True:
            try:
                tick = self._polled_tick()
            except OSError:
                self._journal.close()
                self._open()
                raise
            if tick is not None or self._sought is None or self._head is None:
                return tick
            # What was sent last is not there, as after a power failure: all from the place on is sent again.
            self._journal.close()
            self._open(seek=False)

    def _polled_tick(self) -> ShipTick | None:
        self._polled = self._polled or self._journal.poll()
        for found in self._polled:
            if isinstance(found, Entry):
                tick = self._of_entry(found)
                if self._sought is None:
                    self._holes.check(found)
                    return self._handed(tick)
                self._holes.pass_by(found)
                if (tick.time_s, tick.session) == (self._sought.time_s, self._sought.session):
                    self._sought = None
                    self._last = tick
            else:
                if not isinstance(found, Repeated):
                    # What is looked for may be gone.
                    self._sought = None
                self._holes.mark(found)
        self._polled = None
        return None

    def _of_entry(self, entry: Entry) -> ShipTick:
        if self._head is None or entry.head.session != self._head.session:
            head = self._head = entry.head
            self._sampling = SampleStream(head.catalogue, head.sources, paced=head.paced, met=head.met)
            self._restarts.begin()
        assert self._sampling is not None  # noqa: S101 - there is one for each head
        if self._sought is None:
            # Up to what was sent last it is as the checkpoint says.
            self._identity = self._identity.after(entry.snapshot)
        sample = self._sampling.add(entry.snapshot)
        return self._made(entry.snapshot.tick.time_s, sample, self._journal.position(entry))

    def _made(self, time_s: float, sample: Sample | None, position: Position) -> ShipTick:
        assert self._head is not None  # noqa: S101
        head = self._head
        restart = self._restarts.add(position, head.interval_s)
        return ShipTick(time_s, head.session, head.catalogue, self._identity, sample, position, restart)

    def _handed(self, tick: ShipTick) -> ShipTick:
        self._last, self._done = tick, tick.checkpoint
        return tick

    def _from_memory(self) -> ShipTick | None:
        if self._recent is None or self._last is None:
            return None
        if not self._held and not self._remembered(self._recent, self._last):
            return None
        moment = self._held.popleft()
        self._number, self._identity = moment.number, moment.identity
        return self._handed(self._made(moment.tick.time_s, moment.sample, moment.position))

    def _remembered(self, recent: RecentTicks, last: ShipTick) -> bool:
        """Fill up with what came after the last tick; return whether something did."""
        if self._number is not None:
            moments = recent.after(self._number)
            if moments is None:
                # Memory does not reach back so far: the journal does.
                self._open()
                return False
            self._held.extend(moments)
            return bool(self._held)
        number = recent.at(last.time_s)
        moments = None if number is None else recent.after(number - 1)
        # Another tick may have had this time before the clock was set.
        if number is None or not moments or moments[0].number != number or moments[0].position != last.position:
            return False
        self._number = number
        self._journal.close()
        self._held.extend(moments[1:])
        return bool(self._held)
