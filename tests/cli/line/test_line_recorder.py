"""The header of a recording describes the node as it is at each tick, even if the node answers late."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from cli.line.line_recorder import open_journal, recorded
from collector.model.snapshot import Scrape, SourceError, Tick
from collector.node import node_sampler
from collector.node.host.cassandra_processes import NodeFacts
from collector.node.node_sampler import NameOverrides, NodeSampler, Source
from collector.node.selection import Selection
from collector.recording.reader import Entry, read
from collector.recording.writer import Limits, files_of
from tests.collector.fakes import FakeClock

FACTS = NodeFacts("127.0.0.1", jvm="77@db1", is_local=True, origin="first")


class Node:
    """A node that answers once `facts` is set."""

    name = kind = "fake"
    paced = False
    host = "127.0.0.1"
    members: frozenset[str] = frozenset()
    facts: NodeFacts | None = None

    @property
    def sources(self) -> Sequence[Source]:
        return [self]

    def learn(self, timeout_s: float) -> NodeFacts:
        return self._known()

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        return ()

    def read(self, timeout_s: float) -> Scrape:
        return Scrape(self.name, 5000.0, {}, self._known().origin)

    def _known(self) -> NodeFacts:
        if self.facts is None:
            raise SourceError("no answer")
        return self.facts

    def provides(self, metric: str) -> bool:
        return True

    def tables(self) -> set[tuple[str, str]]:
        return set()

    def close(self) -> None:
        """Do nothing."""


def test_a_replay_knows_the_interface_and_the_process_that_the_line_knew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_sampler, "interface_of", lambda address, net: "lo" if address else "eth0")
    clock, node, selection = FakeClock(), Node(), Selection(frozenset())
    with closing(NodeSampler(node, selection, NameOverrides(node="n"), clock)) as sampler:
        journal = open_journal(sampler, tmp_path / "n", Limits(sync="never"), selection, 1.0, pytest.fail)
        known = []
        with closing(journal):
            for _ in recorded(sampler.snapshots((Tick(clock.wall_s() + number) for number in range(6)), 1.0), journal):
                known.append((*sampler.devices, sampler.facts.origin))
                clock.busy(120.0)
                if len(known) == 2:
                    node.facts = FACTS
                if len(known) == 4:
                    node.facts = NodeFacts("127.0.0.1", jvm="78@db1", is_local=True, origin="second")
    entries = [record for record in read(files_of(tmp_path / "n")[0]) if isinstance(record, Entry)]
    heads = [entry.head for entry in entries]
    assert [(head.disk, head.interface, head.process.partition(" ")[2]) for head in heads] == known
    assert [(interface, origin) for _, interface, origin in known] == [
        ("eth0", ""),
        ("eth0", ""),
        ("lo", "first"),
        ("lo", "first"),
        ("lo", "second"),
        ("lo", "second"),
    ]
