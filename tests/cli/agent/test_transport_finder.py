"""While the node is not answering, other transports are tried periodically, and one that answers is used."""

from collections.abc import Iterable

import pytest

from cli.agent.agent_config import EVERY_S, TransportFinder
from cli.line.node_selection import TransportFactory
from collector.model.snapshot import SourceError
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import Selection
from tests.collector.fakes import FakeClock

PATIENCE_S = 60.0
NOBODY = "http://127.0.0.1:1/jolokia"


class FakeTransports:
    """Provides two transports and counts the attempts; only nodetool can answer."""

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

    def make_sampler(self, kind: str, factory: TransportFactory) -> NodeSampler:
        transports = self

        class Learning(NodeSampler):
            def learn(self, timeout_s: float = 0.0) -> bool:
                del timeout_s
                if kind != "nodetool" or not transports.answers:
                    raise SourceError("no answer")
                return True

            def close(self) -> None:
                transports.closed.append(kind)

        return Learning(factory(Selection(), self.clock), Selection(), NameOverrides(), self.clock)

    def tick(self, after_s: float, *, answered: bool = False) -> str:
        """Advance the clock and simulate a tick; return the kind of the transport to switch to, or ""."""
        self.clock.busy(after_s)
        contact = self.finder.tick(answered=answered)
        if self.finder.running is not None:
            self.finder.running.join(PATIENCE_S)
        return contact.kind if contact else ""


def test_no_transport_is_tried_while_the_node_answers() -> None:
    transports = FakeTransports()
    assert [transports.tick(EVERY_S, answered=True) for _ in range(5)] == [""] * 5
    assert transports.tried == 0


def test_a_transport_that_answers_is_used_from_the_next_tick() -> None:
    transports = FakeTransports()
    transports.answers = True
    assert transports.tick(EVERY_S - 1) == ""
    assert transports.tried == 0
    assert transports.tick(1) == ""
    assert transports.tried == 1
    assert transports.tick(1) == "nodetool"
    assert transports.closed == ["jolokia"]


def test_transports_are_tried_periodically_until_one_answers() -> None:
    transports = FakeTransports()
    assert [transports.tick(1) for _ in range(round(3 * EVERY_S))] == [""] * round(3 * EVERY_S)
    assert 2 <= transports.tried <= 3


@pytest.mark.parametrize("answers", [True, False])
def test_a_new_transport_is_closed_when_the_node_answers_meanwhile(answers: bool) -> None:
    transports = FakeTransports()
    transports.answers = answers
    transports.tick(EVERY_S)
    assert transports.tick(1, answered=True) == ""
    # A transport that answers is closed too, because it is no longer needed.
    assert sorted(transports.closed) == ["jolokia", "nodetool"]
