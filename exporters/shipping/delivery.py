"""Getting points to a store: in requests of a bounded size, and without those that it will never take."""

import re
from collections import deque
from collections.abc import Callable, Sequence

from exporters.rate_limited_logger import RateLimitedLogger
from exporters.shipping.dead_letters import DeadLetters
from exporters.sinks.sink import RefusedError, Sink, TooLargeError, UnavailableError

MOST_POINTS = 5000
MOST_BYTES = 2 << 20
# Of one request, however slowly the store answers.
TIMEOUT_S = 10.0
# A store that refuses every point may have the wrong settings: it is believed when it has said the same for so long.
BELIEVED_AFTER_S = 3600.0
# So many points, spread over all that wait, are tried alone before a store counts as refusing every point.
PROBES = 20
# What differs between refusals for the same reason: the point that is quoted, and numbers.
DETAILS = re.compile(r"['\"].*|\d+")

Points = Sequence[bytes]


class Delivery:
    """Sends what it is given, in order, as often as it takes; remembers what of it the store has."""

    def __init__(
        self, sink: Sink, aside: DeadLetters, seldom: RateLimitedLogger, monotonic_s: Callable[[], float]
    ) -> None:
        self._sink = sink
        self._aside = aside
        self._seldom = seldom
        self._monotonic_s = monotonic_s
        self._waiting: deque[Points] = deque()
        # Whether the store has taken any of the points that were put last: then others are refused for what they are.
        self._takes_some = False
        # Why it refuses every point, and since when.
        self._reason, self._since_s = "", 0.0
        self.points = 0
        self.refused = 0

    @property
    def waits(self) -> bool:
        """Whether there is something that the store does not have."""
        return bool(self._waiting)

    def put(self, points: Points) -> None:
        """Take what is to be sent next."""
        self._waiting.extend(requests(points))
        self._takes_some = False

    def send(self, stopped: Callable[[], bool]) -> None:
        """Send all that waits, or until it is to stop. Raises UnavailableError; call again then."""
        while self._waiting and not stopped():
            points = self._waiting[0]
            try:
                self._sink.send(points, TIMEOUT_S)
            except TooLargeError as error:
                if len(points) == 1:
                    raise UnavailableError(str(error)) from None
                self._halve()
            except RefusedError as error:
                self._refused(points, error)
            else:
                self._waiting.popleft()
                self.points += len(points)
                self._takes_some, self._reason = True, ""

    def _refused(self, points: Points, error: RefusedError) -> None:
        """Find the points that are refused: the store takes those that are not. Raises UnavailableError."""
        if not self._takes_some:
            if not error.every and self._probe():
                return
            self._require_belief(error)
        elif len(points) > 1 and not error.every:
            self._halve()
            return
        self._waiting.popleft()
        self._set_aside(points, error)

    def _probe(self) -> bool:
        """Return whether the store takes a point of those that wait. Raises UnavailableError."""
        every = [point for part in self._waiting for point in part]
        for index in range(0, len(every), -(-len(every) // PROBES)):
            try:
                self._sink.send([every[index]], TIMEOUT_S)
            except (RefusedError, TooLargeError):
                continue
            self._takes_some = True
            self.points += 1
            # Not all stores take the same point twice for one.
            del every[index]
            self._waiting = deque(requests(every))
            return True
        return False

    def _require_belief(self, error: RefusedError) -> None:
        """Raise UnavailableError unless every point has been refused for long, and for the same reason."""
        reason, now_s = DETAILS.sub("", str(error)), self._monotonic_s()
        if reason != self._reason:
            self._reason, self._since_s = reason, now_s
        if now_s - self._since_s < BELIEVED_AFTER_S:
            raise UnavailableError(f"refuses every point: {error}")

    def _halve(self) -> None:
        points = self._waiting.popleft()
        middle = len(points) // 2
        self._waiting.extendleft((points[middle:], points[:middle]))

    def _set_aside(self, points: Points, error: RefusedError) -> None:
        self.refused += len(points)
        try:
            kept = self._aside.write(points, str(error))
        except OSError as trouble:
            kept = 0
            self._seldom(f"{self._aside.path}: {trouble.strerror}: refused points are only counted", kind="aside")
        where = f"written to {self._aside.path}" if kept else "not kept"
        if 0 < kept < len(points):
            where = f"the first {kept} {where}"
        number = f"{len(points)} points" if len(points) > 1 else "a point"
        self._seldom(f"refuses {number}, {where}: {error}", kind="refused")


def requests(points: Points) -> list[Points]:
    """Return points in parts of a bounded number and size, in order; one that is larger is a part of its own."""
    found: list[Points] = []
    begin = size = 0
    for place, point in enumerate(points):
        if place > begin and (place - begin >= MOST_POINTS or size + len(point) > MOST_BYTES):
            found.append(points[begin:place])
            begin, size = place, 0
        size += len(point) + 1
    return [*found, points[begin:]] if len(points) > begin else found
