"""Getting points to a store: in requests of a bounded size, and without those that it will never take."""

from collections import deque
from collections.abc import Callable, Sequence

from exporters.saying import Seldom
from exporters.shipping.aside import Aside
from exporters.sinks.sink import RefusedError, Sink

MOST_POINTS = 5000
MOST_BYTES = 2 << 20
# Of one request, however slowly the store answers.
TIMEOUT_S = 10.0

Points = Sequence[bytes]


class Delivery:
    """Sends what it is given, in order, as often as it takes; remembers what of it the store has."""

    def __init__(self, sink: Sink, aside: Aside, seldom: Seldom) -> None:
        self._sink = sink
        self._aside = aside
        self._seldom = seldom
        self._waiting: deque[Points] = deque()
        self.points = 0
        self.refused = 0

    @property
    def waits(self) -> bool:
        """Whether there is something that the store does not have."""
        return bool(self._waiting)

    def put(self, points: Points) -> None:
        """Take what is to be sent next."""
        self._waiting.extend(requests(points))

    def send(self, stopped: Callable[[], bool]) -> None:
        """Send all that waits, or until it is to stop. Raises UnavailableError; call again then."""
        while self._waiting and not stopped():
            points = self._waiting[0]
            try:
                self._sink.send(points, TIMEOUT_S)
            except RefusedError as error:
                self._waiting.popleft()
                self._refused(points, error)
            else:
                self._waiting.popleft()
                self.points += len(points)

    def _refused(self, points: Points, error: RefusedError) -> None:
        """Find the points that are refused: the store takes those that are not."""
        if len(points) > 1 and not error.every:
            middle = len(points) // 2
            self._waiting.extendleft((points[middle:], points[:middle]))
            return
        self.refused += len(points)
        try:
            kept = self._aside.write(points, str(error))
        except OSError as trouble:
            kept = False
            self._seldom("aside", f"{self._aside.path}: {trouble.strerror}: refused points are only counted")
        where = f"written to {self._aside.path}" if kept else "not kept"
        number = f"{len(points)} points" if len(points) > 1 else "a point"
        self._seldom("refused", f"{self._sink.name}: refuses {number}, {where}: {error}")


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
