"""The loop that is the same for all sinks: read, encode, send, remember."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from collector.journal.follower import JournalFollower
from collector.journal.writer import Position
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample
from exporters.bounded_labels import BoundedLabels
from exporters.rate_limited_logger import RateLimitedLogger
from exporters.recent_ticks import RecentTicks
from exporters.shipping import checkpoint as checkpoints
from exporters.shipping.checkpoint import CheckpointError, checkpoint_path, file_name
from exporters.shipping.dead_letters import DeadLetters
from exporters.shipping.delivery import MOST_POINTS, Delivery
from exporters.shipping.gaps import Gaps
from exporters.shipping.retry_delay import Backoff
from exporters.shipping.runtime import Runtime
from exporters.shipping.sink_health import SinkHealth
from exporters.shipping.tick_queue import Journal, ShipTick, TickQueue
from exporters.sinks.sink import Sink, UnavailableError

# How long to wait for news, and for a journal that cannot be read.
POLL_S = 0.25
TROUBLE_S = 5.0
SAVE_S = 1.0
# Of a core, so that catching up never delays the sampling.
SHARE = 0.6


@dataclass(frozen=True)
class Plan:
    """What to ship, from where, and what to keep.

    opened  opens the journal at a place, None for its oldest.
    start   where to begin without a checkpoint; None for the oldest.
    identity  who the node is known to be there.
    kept    the folder of checkpoints and of refused points; None to keep neither.
    recent  the last ticks in memory, where there are some.
    share   of a core that catching up may take; 1 for all of it.
    begin_s, end_s  the times of the ticks that are wanted.
    """

    opened: Callable[[Position | None], Journal]
    start: Position | None = None
    identity: Identity = field(default_factory=Identity)
    kept: Path | None = None
    recent: RecentTicks | None = None
    share: float = SHARE
    begin_s: float = -inf
    end_s: float = inf


def following(folder: Path) -> Callable[[Position | None], Journal]:
    """Return what opens the journal in a folder that is being written."""
    return lambda start: JournalFollower(folder, start)


class Shipper:
    """Brings what is recorded to one sink; it lives in one thread, and `health` may be asked from all."""

    def __init__(self, sink: Sink, plan: Plan, means: Runtime, say: Callable[[str], None]) -> None:
        """Take where to, what, time and chance, and what tells people."""
        self._sink = sink
        self._plan = plan
        self._means = means
        self._say = say
        self._seldom = RateLimitedLogger(lambda text: say(f"{sink.name}: {text}"), means.monotonic_s)
        self._holes = Gaps(self._seldom)
        kept = plan.kept
        self._path = None if kept is None else checkpoint_path(kept, sink.name)
        aside = DeadLetters(None if kept is None else kept / f"{file_name(sink.name)}.refused")
        self._delivery = Delivery(sink, aside, self._seldom, means.monotonic_s)
        self._backoff = Backoff(means.chance)
        begin = self._loaded()
        self._ticks = TickQueue(plan.opened, begin, self._plan.start, self._holes, plan.recent, plan.identity)
        self._reached_s = None if begin is None else begin.time_s
        self._unsaved: ShipTick | None = None
        self._saved_s = -inf
        self._down_s: float | None = None
        self._health = SinkHealth(sink.name)
        self._catalogue: Mapping[str, Metric] = {}
        self._bounded = BoundedLabels(self._catalogue)
        self._busy_s, self._used_s = means.monotonic_s(), means.cpu_s()
        self._behind = False
        self.ticks = 0
        self.stopped = False

    def health(self) -> SinkHealth:
        """Return how it goes, from any thread."""
        return replace(self._health, lag_s=self._lag_s())

    def run(self, *, whole: bool = False) -> None:
        """Ship until it is told to stop; with `whole`, until all is shipped. Raises OSError only then."""
        try:
            while not self.stopped:
                try:
                    more = self.step()
                except OSError as error:
                    if whole:
                        raise
                    self._trouble(error)
                    continue
                if whole and not more:
                    break
                if not more:
                    self._wait(POLL_S)
        finally:
            self.close()

    def step(self) -> bool:
        """Ship the next ticks; return whether there were any. Raises OSError when the journal cannot be read."""
        points: list[bytes] = []
        last, tick, wanted = None, None, 0
        try:
            while len(points) < MOST_POINTS and (tick := self._ticks.next()) is not None:
                last = tick
                self._reached_s = tick.time_s if self._reached_s is None else self._reached_s
                if tick.sample is not None and self._plan.begin_s <= tick.time_s <= self._plan.end_s:
                    wanted += 1
                    points += self._encoded(tick, tick.sample)
        finally:
            # What was read before the trouble is sent: the journal is not asked for it again.
            if last is not None:
                self._behind = tick is not None
                self._deliver(points, last)
                self.ticks += wanted if not self._delivery.waits else 0
            else:
                self._behind = False
                self._save()
        self._rest()
        return last is not None

    def close(self) -> None:
        """Keep where it got to, and leave the store and the journal."""
        self._saved_s = -inf
        self._save()
        self._ticks.close()
        self._sink.close()

    def _encoded(self, tick: ShipTick, sample: Sample) -> list[bytes]:
        if tick.catalogue is not self._catalogue:
            self._catalogue, self._bounded = tick.catalogue, BoundedLabels(tick.catalogue)
        sample = replace(sample, values=self._bounded.values(sample.values))
        return self._sink.encode(self._bounded.catalogue, tick.identity, sample)

    def _deliver(self, points: list[bytes], last: ShipTick) -> None:
        """Send points, however long the store takes nothing; then what they are made of is done."""
        self._delivery.put(points)
        while self._delivery.waits and not self.stopped:
            taken = self._delivery.points
            failure = None
            try:
                self._delivery.send(self._is_stopped)
            except UnavailableError as error:
                failure = error
            # A store that refuses every point is down, even when these are set aside in the end.
            if self._delivery.points > taken:
                self._rose()
            if failure is not None:
                self._fell(failure)
                self._wait(self._backoff.next_s(failure.retry_after_s))
        if not self._delivery.waits:
            self._reached_s, self._unsaved = last.time_s, last
            self._save()
        self._tell()

    def _fell(self, error: UnavailableError) -> None:
        self._down_s = self._means.monotonic_s() if self._down_s is None else self._down_s
        self._health = replace(self._health, up=False, failures=self._health.failures + 1, why=str(error))
        self._tell()
        self._seldom(f"takes nothing: {error}: it is tried again", kind="down")

    def _rose(self) -> None:
        self._backoff.reset()
        if self._down_s is not None:
            down_s = self._means.monotonic_s() - self._down_s
            self._say(f"{self._sink.name}: takes points again, after {down_s:.0f} s; what came meanwhile is sent")
            self._seldom.forget("down")
        self._down_s = None
        self._health = replace(self._health, up=True, why="")

    def _trouble(self, error: OSError) -> None:
        what = f"{error.filename or 'the journal'}: {error.strerror}: nothing can be read to send"
        self._health = replace(self._health, why=what)
        self._seldom(what, kind="journal")
        self._wait(TROUBLE_S)

    def _tell(self) -> None:
        sent = self._delivery
        self._health = replace(
            self._health, points=sent.points, refused_points=sent.refused, lost_ticks=self._holes.lost
        )

    def _lag_s(self) -> float:
        recent = self._plan.recent
        newest = recent.last if recent else None
        reached_s = self._reached_s
        if reached_s is None or (newest is None and not (self._behind or self._delivery.waits)):
            return 0.0
        newest_s = self._means.wall_s() if newest is None else newest.tick.time_s
        return max(newest_s - reached_s, 0.0)

    def _rest(self) -> None:
        """While it catches up, wait for as long as the CPU time that it took is more than its share."""
        now_s, used_s = self._means.monotonic_s(), self._means.cpu_s()
        rest_s = (used_s - self._used_s) / self._plan.share - (now_s - self._busy_s)
        if self._behind and rest_s > 0 and self._plan.share < 1:
            self._wait(rest_s)
        self._busy_s, self._used_s = self._means.monotonic_s(), self._means.cpu_s()

    def _loaded(self) -> checkpoints.Checkpoint | None:
        if self._path is None:
            return None
        try:
            return checkpoints.load(self._path)
        except CheckpointError as error:
            self._say(f"{error}: all that is recorded is sent, some of it again")
        except OSError as error:
            self._say(f"{self._path}: {error.strerror}: all that is recorded is sent, some of it again")
        self._plan = replace(self._plan, start=None)
        return None

    def _save(self) -> None:
        now_s = self._means.monotonic_s()
        if self._path is None or self._unsaved is None or now_s - self._saved_s < SAVE_S:
            return
        self._saved_s = now_s
        try:
            checkpoints.save(self._path, self._unsaved.checkpoint)
        except OSError as error:
            what = f"{self._path}: {error.strerror}: after a restart some points would be sent again"
            self._seldom(what, kind="checkpoint")
        else:
            self._unsaved = None

    def _wait(self, seconds: float) -> None:
        self._seldom.flush()
        self.stopped = self._means.wait(seconds) or self.stopped

    def _is_stopped(self) -> bool:
        self._wait(0.0)
        return self.stopped
