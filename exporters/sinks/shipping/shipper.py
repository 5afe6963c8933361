"""The shipping loop, the same for all sinks: read, encode, send, save a checkpoint; and its clocks and delays."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from collector.model.snapshot import Identity
from collector.printable import one_line
from collector.recording.reader import JournalFollower
from collector.recording.writer import Position
from exporters.metrics_page.self_metrics import SinkHealth
from exporters.rate_limited_logger import RateLimitedLogger
from exporters.recent_ticks import RecentTicks
from exporters.sinks.shipping import tick_queue as checkpoints
from exporters.sinks.shipping.delivery import MAX_POINTS, DeadLetters, Delivery
from exporters.sinks.shipping.tick_queue import (
    Checkpoint,
    CheckpointError,
    Gaps,
    Journal,
    ShipTick,
    TickQueue,
    checkpoint_path,
    file_name,
)
from exporters.sinks.sink import LiveFamilies, Sink, UnavailableError

# The maximum number of ticks per step: a sink may need few points of many ticks, and must stop and pause in between.
MAX_TICKS = 200
# How long to wait for new ticks at the end of the journal.
POLL_S = 0.25
# The pause after a failed read.
READ_RETRY_S = 5.0
SAVE_S = 1.0
# The share of a core that shipping may use to catch up; limited so that shipping does not delay sampling.
CPU_SHARE = 0.6
# The delays before a request to an unavailable store is retried.
FIRST_DELAY_S, MAX_DELAY_S = 1.0, 60.0
# Retry-After is capped at MAX_RETRY_AFTER_S.
MAX_RETRY_AFTER_S = 300.0


@dataclass(frozen=True)
class Runtime:
    """Clocks, waiting and randomness, by default the system's; tests substitute their own.

    wait    waits for a number of seconds or until shipping is stopped; returns True if stopped.
    wall_s  the wall clock, in seconds since the epoch.
    cpu_s   CPU time of the current thread.
    random  a random number between 0 and 1.
    idle    waits at the end of the journal for new ticks; returns True if stopped. None to wait for POLL_S.
    """

    wait: Callable[[float], bool]
    monotonic_s: Callable[[], float] = time.monotonic
    wall_s: Callable[[], float] = time.time
    cpu_s: Callable[[], float] = time.thread_time
    random: Callable[[], float] = random.random
    idle: Callable[[], bool] | None = None


class Backoff:
    """Exponential backoff from 1 s to 60 s, with full jitter."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._most_s = FIRST_DELAY_S

    def next_s(self, retry_after_s: float | None) -> float:
        """Return the delay after another failure: a random time, added to the store's Retry-After if it sent one."""
        most_s, self._most_s = self._most_s, min(2 * self._most_s, MAX_DELAY_S)
        random_s = most_s * self._random()
        return random_s if retry_after_s is None else min(retry_after_s, MAX_RETRY_AFTER_S) + random_s

    def reset(self) -> None:
        """Start again with the shortest delay; call this when the store has accepted a request."""
        self._most_s = FIRST_DELAY_S


@dataclass(frozen=True)
class Plan:
    """The ticks to ship, and the files that keep the state.

    open_journal    opens the journal at a position; None for its beginning.
    start           the position to start at if there is no checkpoint; None for the beginning.
    identity        the node's identity at `start`.
    state_folder    the directory for checkpoints and dead-letter files; None to keep neither.
    recent          recent ticks in memory, if any.
    cpu_share       the share of a core that catching up may use; 1 for no limit.
    begin_s, end_s  the time range of the ticks to ship.
    live            returns the agent's self-metrics.
    """

    open_journal: Callable[[Position | None], Journal]
    start: Position | None = None
    identity: Identity = field(default_factory=Identity)
    state_folder: Path | None = None
    recent: RecentTicks | None = None
    cpu_share: float = CPU_SHARE
    begin_s: float = -inf
    end_s: float = inf
    live: LiveFamilies = tuple


def journal_opener(folder: Path) -> Callable[[Position | None], Journal]:
    """Return a function that opens a directory's journal, to which a recorder may still be writing."""
    return lambda start: JournalFollower(folder, start)


class Shipper:
    """Ships a journal to one sink. All methods except `health` must be called from the same thread."""

    def __init__(self, sink: Sink[Any], plan: Plan, runtime: Runtime, log: Callable[[str], None]) -> None:
        """Load the checkpoint; nothing is sent yet."""
        self._sink = sink
        self._plan = plan
        self._runtime = runtime
        self._raw_log = log
        self._log = RateLimitedLogger(lambda text: log(f"{sink.name}: {text}"), runtime.monotonic_s)
        self._gaps = Gaps(self._log)
        state_folder = plan.state_folder
        self._path = None if state_folder is None else checkpoint_path(state_folder, sink.name)
        dead_letters = DeadLetters(None if state_folder is None else state_folder / f"{file_name(sink.name)}.refused")
        self._delivery = Delivery(sink, dead_letters, self._log, runtime.monotonic_s)
        self._backoff = Backoff(runtime.random)
        checkpoint = self._load_checkpoint()
        start = self._plan.start
        self._ticks = TickQueue(
            plan.open_journal, checkpoint, start, self._gaps, plan.recent, plan.identity, sink.replay, plan.live
        )
        self._shipped_until_s = None if checkpoint is None else checkpoint.time_s
        self._unsaved: Checkpoint | None = None
        self._saved_s = -inf
        self._down_s: float | None = None
        self._health = SinkHealth(sink.name)
        self._busy_s, self._used_s = runtime.monotonic_s(), runtime.cpu_s()
        self._behind = False
        self.ticks = 0
        self.stopped = False

    @property
    def exports_page(self) -> bool:
        """Whether the sink's points depend on the options of /metrics."""
        return self._sink.exports_page

    def health(self) -> SinkHealth:
        """Return the sink's health; may be called from any thread."""
        return replace(self._health, lag_s=self._lag_s())

    def run(self) -> None:
        """Ship until stopped; a read error is logged, and the read is retried."""
        try:
            while not self.stopped:
                try:
                    more = self.step()
                except OSError as error:
                    self._report_read_error(error)
                else:
                    if not more:
                        self._idle()
        finally:
            self.close()

    def step(self) -> bool:
        """Ship the next ticks; return whether there were any. Raises OSError if the journal cannot be read."""
        points: list[bytes] = []
        last, tick, selected, read = None, None, 0, 0
        try:
            while len(points) < MAX_POINTS * self._sink.shards and read < MAX_TICKS:
                tick = self._ticks.next()
                if tick is None:
                    break
                last, read = tick, read + 1
                self._shipped_until_s = tick.time_s if self._shipped_until_s is None else self._shipped_until_s
                if self._plan.begin_s <= tick.time_s <= self._plan.end_s:
                    tick_points = self._sink.encode(tick.content)
                    selected += bool(tick_points) or tick.content.sample is not None
                    points += tick_points
                else:
                    self._sink.replay(tick.content)
        finally:
            # Even after an error, send the ticks read before it, because they will not be read again.
            if last is not None:
                self._behind = tick is not None
                self._deliver(points, last)
                self.ticks += selected if not self._delivery.has_pending else 0
            else:
                self._behind = False
                self._save_checkpoint()
        self._throttle()
        return last is not None

    def close(self) -> None:
        """Save the checkpoint, and close the sink and the journal."""
        self._saved_s = -inf
        self._save_checkpoint()
        self._ticks.close()
        self._sink.close()

    def _deliver(self, points: list[bytes], last: ShipTick) -> None:
        """Send points, waiting while the store is unavailable, and then advance the checkpoint."""
        self._delivery.enqueue(points)
        while self._delivery.has_pending and not self.stopped:
            accepted = self._delivery.points
            failure = None
            try:
                self._delivery.send(self._is_stopped)
            except UnavailableError as error:
                failure = error
            # A store that refuses every point still counts as down after the sink has given up on the points.
            if self._delivery.points > accepted:
                self._mark_up()
            if failure is not None:
                self._mark_down(failure)
                self._wait(self._backoff.next_s(failure.retry_after_s))
        if not self._delivery.has_pending:
            self._shipped_until_s = last.time_s
            self._unsaved = replace(last.checkpoint, sink_state=self._sink.state())
            self._save_checkpoint()
        self._update_health()

    def _mark_down(self, error: UnavailableError) -> None:
        self._down_s = self._runtime.monotonic_s() if self._down_s is None else self._down_s
        self._health = replace(self._health, up=False, failures=self._health.failures + 1, reason=str(error))
        self._update_health()
        self._log(f"store unavailable: {error}; retrying", kind="down")

    def _mark_up(self) -> None:
        self._backoff.reset()
        if self._down_s is not None:
            down_s = self._runtime.monotonic_s() - self._down_s
            self._raw_log(f"{self._sink.name}: store available again after {down_s:.0f} s; sending pending points")
            self._log.forget("down")
        self._down_s = None
        self._health = replace(self._health, up=True, reason="")

    def _report_read_error(self, error: OSError) -> None:
        text = f"{error.filename or 'the journal'}: {error.strerror}: cannot read the ticks to send"
        self._health = replace(self._health, reason=text)
        self._log(text, kind="journal")
        self._wait(READ_RETRY_S)

    def _update_health(self) -> None:
        sent = self._delivery
        self._health = replace(
            self._health, points=sent.points, refused_points=sent.refused, lost_ticks=self._gaps.lost
        )

    def _lag_s(self) -> float:
        recent = self._plan.recent
        newest = recent.last if recent else None
        reached_s = self._shipped_until_s
        if reached_s is None or (newest is None and not (self._behind or self._delivery.has_pending)):
            return 0.0
        newest_s = self._runtime.wall_s() if newest is None else newest.tick.time_s
        return max(newest_s - reached_s, 0.0)

    def _throttle(self) -> None:
        """While catching up, wait until the CPU time used since the last call is within the CPU share."""
        now_s, used_s = self._runtime.monotonic_s(), self._runtime.cpu_s()
        rest_s = (used_s - self._used_s) / self._plan.cpu_share - (now_s - self._busy_s)
        if self._behind and rest_s > 0 and self._plan.cpu_share < 1:
            self._wait(rest_s)
        self._busy_s, self._used_s = self._runtime.monotonic_s(), self._runtime.cpu_s()

    def _load_checkpoint(self) -> Checkpoint | None:
        if self._path is None:
            return None
        try:
            checkpoint = checkpoints.load(self._path)
            if checkpoint is not None:
                self._sink.restore(checkpoint.sink_state)
        except CheckpointError as error:
            problem = str(error)
        except OSError as error:
            problem = f"{self._path}: {error.strerror}"
        except (TypeError, ValueError, KeyError) as error:
            problem = f"{self._path}: malformed checkpoint ({one_line(type(error).__name__)})"
        else:
            return checkpoint
        self._raw_log(f"{problem}: sending the whole recording, including ticks already sent")
        self._plan = replace(self._plan, start=None)
        return None

    def _save_checkpoint(self) -> None:
        now_s = self._runtime.monotonic_s()
        if self._path is None or self._unsaved is None or now_s - self._saved_s < SAVE_S:
            return
        self._saved_s = now_s
        try:
            checkpoints.save(self._path, self._unsaved)
        except OSError as error:
            text = f"{self._path}: {error.strerror}: some points would be sent again after a restart"
            self._log(text, kind="checkpoint")
        else:
            self._unsaved = None

    def _wait(self, seconds: float) -> None:
        self._log.flush()
        self.stopped = self._runtime.wait(seconds) or self.stopped

    def _idle(self) -> None:
        if self._runtime.idle is None:
            self._wait(POLL_S)
            return
        self._log.flush()
        self.stopped = self._runtime.idle() or self.stopped

    def _is_stopped(self) -> bool:
        self._wait(0.0)
        return self.stopped
