"""The list of a node's peers follows its cluster, whatever the order in which the node learns of changes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import permutations, repeat
from typing import Any

import pytest

from collector.cassandra.storage import members
from collector.host.cassandra_processes import NodeFacts
from collector.model.snapshot import Scrape, SourceError, Tick
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import Selection
from collector.sampling.source_reader import Source
from tests.collector.fakes import FakeClock

OWN, OLD, FIRST, SECOND = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
Change = Callable[["Cluster"], None]


class Cluster:
    """A node whose gossip and ring a test changes; it counts the questions about peers."""

    name = kind = "fake"
    paced = False
    host = "203.0.113.9"

    def __init__(self, *addresses: str) -> None:
        self.gossip = set(addresses)
        self.ring = set(addresses)
        self.clock = FakeClock()
        self.members: frozenset[str] = frozenset()
        self.origin = "a"
        self.learned = 0
        self.asked = 0
        self.fails = False

    @property
    def sources(self) -> Sequence[Source]:
        return [self]

    def learn(self, timeout_s: float) -> NodeFacts:
        self.learned += 1
        return NodeFacts(OWN, jvm="1@host", origin=self.origin, peers=tuple(sorted(self.ring)))

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        self.asked += 1
        if self.fails:
            raise SourceError("no answer")
        return tuple(sorted(self.ring))

    def read(self, timeout_s: float) -> Scrape:
        self.members = frozenset(self.gossip)
        return Scrape(self.name, self.clock.monotonic_s(), {}, self.origin)

    def provides(self, metric: str) -> bool:
        return True

    def tables(self) -> set[tuple[str, str]]:
        return set()

    def close(self) -> None:
        """Nothing to leave."""


def gossip_gains(address: str) -> Change:
    return lambda cluster: cluster.gossip.add(address)


def gossip_loses(address: str) -> Change:
    return lambda cluster: cluster.gossip.discard(address)


def ring_gains(address: str) -> Change:
    return lambda cluster: cluster.ring.add(address)


def ring_loses(address: str) -> Change:
    return lambda cluster: cluster.ring.discard(address)


def nothing(_: Cluster) -> None:
    """Change nothing."""


JOINS = gossip_gains(FIRST), ring_gains(FIRST), gossip_gains(SECOND), ring_gains(SECOND)
# As many nodes afterwards as before.
REPLACEMENT = gossip_gains(FIRST), ring_gains(FIRST), gossip_loses(OLD), ring_loses(OLD)


def run(cluster: Cluster, watch: NodeSampler, *changes: Change, seconds: int = 0) -> None:
    """Let one change happen before each tick, then this many seconds pass with a tick each."""

    def ticks() -> Iterator[Tick]:
        for number, change in enumerate([*changes, *repeat(nothing, seconds)]):
            change(cluster)
            cluster.clock.busy(1.0)
            yield Tick(float(number))

    for _ in watch.snapshots(ticks(), 1.0):
        pass


def watched(cluster: Cluster) -> NodeSampler:
    return NodeSampler(cluster, Selection(frozenset()), NameOverrides(), cluster.clock)


def peers(watch: NodeSampler) -> tuple[str, ...]:
    return watch.facts.peers


@pytest.mark.parametrize("early", range(5), ids="{} before the first reading".format)
@pytest.mark.parametrize(
    ("changes", "expected"),
    [(JOINS, (OWN, OLD, FIRST, SECOND)), (REPLACEMENT, (OWN, FIRST))],
    ids=["two join", "one is replaced"],
)
def test_in_every_order_the_list_becomes_the_ring(
    changes: Sequence[Change], expected: tuple[str, ...], early: int
) -> None:
    for order in permutations(changes):
        cluster = Cluster(OWN, OLD)
        with closing(watched(cluster)) as watch:
            watch.learn()
            for change in order[:early]:
                change(cluster)
            run(cluster, watch, *order[early:], seconds=9)
            assert peers(watch) == expected
            asked = cluster.asked
            run(cluster, watch, seconds=20)
            assert (cluster.asked, cluster.learned) == (asked, 1)


def test_the_ring_may_follow_minutes_later() -> None:
    cluster = Cluster(OWN)
    with closing(watched(cluster)) as watch:
        watch.learn()
        run(cluster, watch, gossip_gains(FIRST), gossip_gains(SECOND), seconds=300)
        run(cluster, watch, ring_gains(FIRST), ring_gains(SECOND), seconds=61)
        assert peers(watch) == (OWN, FIRST, SECOND)


def test_a_member_that_never_joins_the_ring_costs_one_question_a_minute() -> None:
    cluster = Cluster(OWN)
    with closing(watched(cluster)) as watch:
        watch.learn()
        run(cluster, watch, gossip_gains(FIRST), seconds=3600)
        assert cluster.asked <= 6 + 60
        # It hides nobody who joins now.
        run(cluster, watch, gossip_gains(SECOND), ring_gains(SECOND), seconds=2)
        assert peers(watch) == (OWN, SECOND)


def test_without_changes_nothing_is_asked() -> None:
    cluster = Cluster(OWN, OLD)
    with closing(watched(cluster)) as watch:
        watch.learn()
        run(cluster, watch, seconds=600)
        assert (cluster.learned, cluster.asked) == (1, 0)


def test_a_question_that_fails_keeps_the_list_and_is_repeated() -> None:
    cluster = Cluster(OWN)
    with closing(watched(cluster)) as watch:
        watch.learn()
        cluster.fails = True
        run(cluster, watch, gossip_gains(FIRST), ring_gains(FIRST), seconds=10)
        assert peers(watch) == (OWN,)
        cluster.fails = False
        run(cluster, watch, seconds=60)
        assert peers(watch) == (OWN, FIRST)


def test_a_restarted_node_starts_with_a_short_list() -> None:
    cluster = Cluster(OWN, FIRST)
    with closing(watched(cluster)) as watch:
        watch.learn()
        run(cluster, watch, seconds=2)
        cluster.origin = "b"
        for change in (gossip_loses(FIRST), ring_loses(FIRST)):
            change(cluster)
        run(cluster, watch, seconds=2)
        assert peers(watch) == (OWN,)
        run(cluster, watch, gossip_gains(FIRST), ring_gains(FIRST), seconds=4)
        assert peers(watch) == (OWN, FIRST)
        assert cluster.learned == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"LiveNodes": [OWN], "UnreachableNodes": [OLD]}, {OWN, OLD}),
        ({"LiveNodes": [OWN, None, 7, [OLD]], "UnreachableNodes": []}, {OWN}),
        ({"LiveNodes": [OWN]}, set()),
        ({"LiveNodes": OWN, "UnreachableNodes": "ERROR: no such attribute"}, set()),
        ([OWN], set()),
        (None, set()),
    ],
)
def test_members_are_live_and_unreachable_nodes_where_both_are_known(value: Any, expected: set[str]) -> None:
    assert members({"value": value}) == expected
