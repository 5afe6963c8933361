"""Delivers points to a store in requests of bounded size; points that it refuses go to the dead-letter file."""

import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from exporters.rate_limited_logger import RateLimitedLogger
from exporters.sinks.sink import PartialWriteError, RefusedError, Sink, TooLargeError, UnavailableError

MAX_POINTS = 5000
MAX_BYTES = 2 << 20
# The total time allowed for one request, however slowly the store responds.
TIMEOUT_S = 10.0
# A store that refuses every point may be misconfigured. Give up on points only after it has refused them for
# GIVE_UP_AFTER_S, always for the same reason.
GIVE_UP_AFTER_S = 3600.0
# Before concluding that the store refuses every point, send up to PROBES evenly spaced pending points, each in its own
# request.
PROBES = 20
# The parts of a message that may differ even if the reason for refusing is the same: the quoted point, and numbers.
DETAILS = re.compile(r"['\"].*|\d+")
# Maximum size of the dead-letter file; it has room for all points of one request.
MAX_FILE_BYTES = 4 << 20
MODE = 0o640

Points = Sequence[Any]
"""Points of the sink's type."""


class DeadLetters:
    """Appends refused points to a file until it is full, and drops later ones, because the first are the most useful.

    If the path is None, nothing is written.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, points: Sequence[bytes], reason: str) -> int:
        """Write points and the reason; return the number of points that fit. Raises OSError."""
        if self.path is None:
            return 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            room = MAX_FILE_BYTES - os.fstat(descriptor).st_size
            lines = [f"# {reason}".encode(), *points]
            ends = accumulate(len(line) + 1 for line in lines)
            fitting = lines[: sum(1 for end in ends if end <= room)]
            if len(fitting) > 1:
                os.write(descriptor, b"".join(b"%b\n" % line for line in fitting))
            return max(len(fitting) - 1, 0)
        finally:
            os.close(descriptor)


class Delivery:
    """Sends points in order, splitting requests as needed, and keeps the points that are still pending."""

    def __init__(
        self, sink: Sink[Any], dead_letters: DeadLetters, log: RateLimitedLogger, monotonic_s: Callable[[], float]
    ) -> None:
        self._sink = sink
        self._dead_letters = dead_letters
        self._log = log
        self._monotonic_s = monotonic_s
        self._pending: deque[Points] = deque()
        # Whether the store has accepted any of the points enqueued last; if so, refused points are themselves at fault.
        self._accepts_some = False
        # The reason why the store is refusing every point, and when that began.
        self._reason, self._refused_since_s = "", 0.0
        self.points = 0
        self.refused = 0

    @property
    def has_pending(self) -> bool:
        """Whether some points have not been delivered yet."""
        return bool(self._pending)

    def enqueue(self, points: Points) -> None:
        """Add points to send after those that are pending."""
        self._pending.extend(requests(points, self._sink.size_bytes, self._sink.shards))
        self._accepts_some = False

    def send(self, stopped: Callable[[], bool]) -> None:
        """Send all pending points, or stop when `stopped` returns True.

        Raises UnavailableError if the store is not accepting points; unsent points stay pending until the next call.
        """
        while self._pending and not stopped():
            points = self._pending[0]
            try:
                self._sink.send(points, TIMEOUT_S)
            except TooLargeError as error:
                if len(points) == 1:
                    raise UnavailableError(str(error)) from None
                self._halve()
            except RefusedError as error:
                self._refused(points, error)
            except PartialWriteError as error:
                self._pending.popleft()
                self._count_partial(points, error)
            else:
                self._pending.popleft()
                self.points += len(points)
                self._accepts_some, self._reason = True, ""

    def _count_partial(self, points: Points, error: PartialWriteError) -> None:
        """Count the points that the store did not accept, while it stored the others."""
        self.points += len(points) - error.refused
        self.refused += error.refused
        self._accepts_some, self._reason = True, ""
        count = f"refused {error.refused} of {len(points)} points" if error.refused else "accepted all points"
        self._log(f"the store {count}: {error}", kind="partial")

    def _refused(self, points: Points, error: RefusedError) -> None:
        """Isolate the points that the store refuses, and write them to the dead-letter file.

        Raises UnavailableError if the store refuses every point but has not yet done so for GIVE_UP_AFTER_S.
        """
        if error.late or self._accepts_some:
            is_split = len(points) > 1 and not error.all_points and self._split_refused(points, error)
        else:
            is_split = not error.all_points and self._probe()
            if not is_split:
                self._require_lasting_refusal(error)
        if not is_split:
            self._pending.popleft()
            self._write_dead_letters(points, error)

    def _split_refused(self, points: Points, error: RefusedError) -> bool:
        """Split a request. If points are late, the store may have rolled back all of them because of a single one.

        Returns False, and splits nothing, if late points must be given up: all belong to one tick, and the store
        accepts none of up to PROBES of them. Raises UnavailableError.
        """
        end = self._leading_tick(points)
        if error.late and end < len(points):
            times_ms = [self._sink.time_ms(point) for point in points]
            # The first point of the tick in the middle; of the second tick if that is the first one.
            self._split(times_ms.index(times_ms[len(points) // 2]) or end)
            return True
        if error.late:
            remaining = self._after_probe(points)
            if remaining is None:
                return False
            self._pending[0] = remaining
        self._halve()
        return True

    def _probe(self) -> bool:
        """Return whether the store accepts any of up to PROBES pending points, sent singly. Raises UnavailableError."""
        points = [point for part in self._pending for point in part]
        # If a later point of a series were sent first, the store would not accept the earlier ones any more.
        end = self._leading_tick(points)
        remaining = self._after_probe(points[:end])
        if remaining is None:
            return False
        self._pending = deque(requests([*remaining, *points[end:]], self._sink.size_bytes, self._sink.shards))
        return True

    def _after_probe(self, points: Points) -> Points | None:
        """Send up to PROBES points singly until the store accepts one; return the others, or None if it accepts none.

        The accepted point is not sent again, because not every store ignores duplicates. Raises UnavailableError.
        """
        for index in range(0, len(points), -(-len(points) // PROBES)):
            try:
                self._sink.send([points[index]], TIMEOUT_S)
            except PartialWriteError as error:
                if error.refused:
                    continue
            except (RefusedError, TooLargeError):
                continue
            self._accepts_some = True
            self.points += 1
            return [*points[:index], *points[index + 1 :]]
        return None

    def _leading_tick(self, points: Points) -> int:
        """Return the number of points before the first one with another time; all points if their order is free."""
        time_ms = self._sink.time_ms
        first_ms = time_ms(points[0])
        return next((index for index, point in enumerate(points) if time_ms(point) != first_ms), len(points))

    def _require_lasting_refusal(self, error: RefusedError) -> None:
        """Raise UnavailableError until the store has refused every point, for the same reason, for GIVE_UP_AFTER_S."""
        reason, now_s = DETAILS.sub("", str(error)), self._monotonic_s()
        if reason != self._reason:
            self._reason, self._refused_since_s = reason, now_s
        if now_s - self._refused_since_s < GIVE_UP_AFTER_S:
            raise UnavailableError(f"it refuses every point: {error}")

    def _halve(self) -> None:
        self._split(len(self._pending[0]) // 2)

    def _split(self, index: int) -> None:
        """Split the first pending request into two."""
        points = self._pending.popleft()
        self._pending.extendleft(part for part in (points[index:], points[:index]) if part)

    def _write_dead_letters(self, points: Points, error: RefusedError) -> None:
        self.refused += len(points)
        try:
            written = self._dead_letters.write([self._sink.text(point) for point in points], str(error))
        except OSError as write_error:
            written = 0
            self._log(
                f"{self._dead_letters.path}: {write_error.strerror}: refused points are not saved", kind="dead letters"
            )
        where = f"written to {self._dead_letters.path}" if written else "not kept"
        if 0 < written < len(points):
            where = f"the first {written} {where}"
        count = f"{len(points)} points" if len(points) > 1 else "a point"
        self._log(f"the store refused {count} ({where}): {error}", kind="refused")


def requests(points: Points, size_bytes: Callable[[Any], int], shards: int) -> list[Points]:
    """Split points, in order, into batches of limited count and size; an oversized point gets its own batch.

    The limits apply to each of the requests that a sink sends at the same time.
    """
    parts: list[Points] = []
    begin = total_bytes = 0
    for index, point_bytes in enumerate(map(size_bytes, points)):
        is_full = index - begin >= MAX_POINTS * shards or total_bytes + point_bytes > MAX_BYTES * shards
        if index > begin and is_full:
            parts.append(points[begin:index])
            begin, total_bytes = index, 0
        total_bytes += point_bytes + 1
    return [*parts, points[begin:]] if len(points) > begin else parts
