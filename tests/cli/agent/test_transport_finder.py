"""Another way to a node that does not answer is looked for now and then, and taken when it answers."""

from collections.abc import Iterable

import pytest

from cli.agent.transport_finder import EVERY_S, TransportFinder
from cli.node.transports import TransportFactory
from collector.jolokia.client import Jolokia
from collector.jolokia.mbean_source import MBeanSource
from collector.model.snapshot import SourceError
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import Selection
from tests.collector.fakes import FakeClock

PATIENCE_S = 20.0
NOBODY = "http://127.0.0.1:1/jolokia"


class Found:
    """Ways to a node of which one may answer, and how often they were tried."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.answers = False
        self.tried = 0
        self.closed: list[str] = []
        self.finder = TransportFinder(self.transports, self.make_sampler, self.clock.monotonic_s)

    def transports(self) -> Iterable[tuple[str, TransportFactory]]:
        self.tried += 1
        for kind in ("jolokia", "nodetool"):
            yield kind, lambda selection, clock: MBeanSource(Jolokia(NOBODY), [], selection, clock)

    def make_sampler(self, kind: str, way: TransportFactory) -> NodeSampler:
        found = self

        class Learning(NodeSampler):
            def learn(self, timeout_s: float = 0.0) -> bool:
                del timeout_s
                if kind != "nodetool" or not found.answers:
                    raise SourceError("no answer")
                return True

            def close(self) -> None:
                found.closed.append(kind)

        return Learning(way(Selection(), self.clock), Selection(), NameOverrides(), self.clock)

    def tick(self, after_s: float, *, answered: bool = False) -> str:
        """Let time pass and a tick come; return the kind of way that is to be taken now."""
        self.clock.busy(after_s)
        made = self.finder.tick(answered=answered)
        if self.finder.running is not None:
            self.finder.running.join(PATIENCE_S)
        return made.kind if made else ""


def test_while_the_node_answers_nothing_is_looked_for() -> None:
    found = Found()
    assert [found.tick(EVERY_S, answered=True) for _ in range(5)] == [""] * 5
    assert found.tried == 0


def test_a_way_that_answers_is_taken_in_the_tick_after() -> None:
    found = Found()
    found.answers = True
    assert found.tick(EVERY_S - 1) == ""
    assert found.tried == 0
    assert found.tick(1) == ""
    assert found.tried == 1
    assert found.tick(1) == "nodetool"
    assert found.closed == ["jolokia"]


def test_they_are_tried_now_and_then_until_one_answers() -> None:
    found = Found()
    assert [found.tick(1) for _ in range(round(3 * EVERY_S))] == [""] * round(3 * EVERY_S)
    assert 2 <= found.tried <= 3


@pytest.mark.parametrize("answers", [True, False])
def test_what_was_found_is_left_when_the_node_answers_meanwhile(answers: bool) -> None:
    found = Found()
    found.answers = answers
    found.tick(EVERY_S)
    assert found.tick(1, answered=True) == ""
    # Both ways are left: that which answers, too.
    assert sorted(found.closed) == ["jolokia", "nodetool"]
