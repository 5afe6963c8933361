"""A node is asked anew who else there is when its cluster has grown or shrunk."""

from collections.abc import Sequence

from collector.local import Facts
from collector.model import Batch, Tick, Values
from collector.sampler import Source
from collector.selection import Selection
from collector.watch import Given, Watch
from tests.collector.fakes import FakeClock

COUNTS = [(1, 0), (1, 0), (3, 0), (2, 1), (2, 1), (2, 0)]


class Growing:
    """A node whose cluster has as many nodes as COUNTS says, tick by tick."""

    name = kind = "fake"
    paced = False
    host = "203.0.113.9"

    def __init__(self) -> None:
        self.learned: list[int] = []
        self._tick = 0

    @property
    def sources(self) -> Sequence[Source]:
        return [self]

    def learn(self, timeout_s: float) -> Facts:
        self.learned.append(self._tick)
        return Facts("10.0.0.1", jvm="1@host", origin="a", peers=("10.0.0.1",) * sum(COUNTS[self._tick - 1]))

    def read(self, timeout_s: float) -> Batch:
        live, unreachable = COUNTS[self._tick]
        self._tick += 1
        values: Values = {("cassandra_endpoints_live",): live, ("cassandra_endpoints_unreachable",): unreachable}
        return Batch(self.name, float(self._tick), values, "a")

    def asks_for(self, metric: str) -> bool:
        return True

    def close(self) -> None:
        """Nothing to leave."""


def test_it_is_asked_again_only_when_their_number_has_changed() -> None:
    node = Growing()
    watch = Watch(node, Selection(frozenset()), Given(), FakeClock())
    watch.learn()
    for _ in watch.snapshots((Tick(float(number)) for number in range(len(COUNTS))), 1.0):
        pass
    # That one of them is not reachable changes nothing; it may be that it went for good.
    assert node.learned == [0, 3, 6]
    assert len(watch.facts.peers) == 2
