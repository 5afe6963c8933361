"""A thousand tables, twenty of them busy: the busy ones are selected, and the sums include all others."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from cli.setup.demo.demo_node import Node
from collector.model.clock import SystemClock, ticks
from collector.model.snapshot import Rate, Sample
from collector.node.catalogue import BEANS
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.tables import REMAINDERS
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import Selection
from exporters.rows.table_rows import NEEDS, tables
from tests.real.node_snapshots import complete
from tests.real.nodes import FAST_SCHEMA, light, spec_of
from tests.real.programs import Load, ask, load, session

pytestmark = pytest.mark.beside

VERSION, ADDRESS, JMX_PORT = "5.0.8", "127.0.154.1", 27240
TABLES, BUSY, RATE = 1000, 20, 300
PATIENCE_TICKS = 90
KEYSPACE_COUNT = next(iter(REMAINDERS))
TABLE_COUNT = REMAINDERS[KEYSPACE_COUNT]


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(spec_of(VERSION, ADDRESS, tmp_path_factory.mktemp("big"), JMX_PORT, heap="1536M"))
    with light(FAST_SCHEMA):
        node.start()
    try:
        node.wait()
        with session(ADDRESS) as driver:
            driver.execute(
                "CREATE KEYSPACE big WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            for number in range(TABLES):
                driver.execute(f"CREATE TABLE big.t{number:03d} (k int PRIMARY KEY, v blob)")
        yield node
    finally:
        node.kill()


@pytest.fixture
def samples(big: Node) -> Iterator[Iterator[Sample]]:
    clock = SystemClock()
    selection = Selection(frozenset(NEEDS), tables=BUSY)
    source = MBeanSource(Jolokia(big.spec.jolokia_url), BEANS, selection, clock)
    with closing(NodeSampler(source, selection, NameOverrides(), clock)) as sampler:
        sampler.learn(60.0)
        yield sampler.sample_stream().samples(complete(sampler.snapshots(ticks(clock, 1.0), 1.0)))


def selected_tables(sample: Sample) -> set[str]:
    """Return the tables that have their own row, with a read rate."""
    rows = tables(sample)
    return {row["table"] for row in rows if row["table"] != OTHERS and row["reads_per_s"] is not None}


def operations(sample: Sample, metric: str) -> float:
    """Return the number of operations on keyspace `big` in the interval, summed over the series of a metric."""
    return sum(
        rate.increase
        for series, rate in sample.values.items()
        if series[0] == metric
        and series[1] == "big"
        and isinstance(rate, Rate)
        and is_of_interval(sample, series, rate)
    )


def is_of_interval(sample: Sample, series: tuple[str, ...], rate: Rate) -> bool:
    """Return whether a rate belongs in the sum over all series.

    If a table's rate covers more than this interval, it includes operations that were counted in earlier intervals
    as operations on other tables.
    """
    return series[0] != TABLE_COUNT or OTHERS in series or rate.elapsed_s in sample.elapsed_s.values()


def node_counts(node: Node) -> int:
    name = "org.apache.cassandra.metrics:type=Keyspace,keyspace=big,name={}Latency"
    return sum(
        int(ask(node, {"type": "read", "mbean": name.format(operation), "attribute": "Count"}))
        for operation in ("Read", "Write")
    )


def test_busy_tables_are_selected_and_sums_are_complete(big: Node, samples: Iterator[Sample]) -> None:
    busy = {f"t{number:03d}" for number in range(BUSY)}
    first = [next(samples) for _ in range(2)]
    before = node_counts(big)
    seen: list[Sample] = []
    with load(big, RATE, "--keyspace", "big", "--tables", str(BUSY)) as running:
        while len(seen) < PATIENCE_TICKS and not (seen and selected_tables(seen[-1]) == busy):
            seen.append(next(samples))
        assert selected_tables(seen[-1]) == busy
        selected_after = len(seen)
        seen += [next(samples) for _ in range(20)]
        assert selected_tables(seen[-1]) == busy
        counted = running.end()
    # Keyspace counters have a scrape interval of ten seconds.
    seen += [next(samples) for _ in range(12)]
    expected = node_counts(big) - before
    assert expected == pytest.approx(counted["reads"] + counted["writes"], rel=0.005)
    assert sum(operations(sample, KEYSPACE_COUNT) for sample in first + seen) == pytest.approx(expected, rel=0.005)
    assert sum(operations(sample, TABLE_COUNT) for sample in first + seen) == pytest.approx(expected, rel=0.005)
    late = seen[selected_after + 10 :]
    others = sum(
        rate.increase
        for sample in late
        for series, rate in sample.values.items()
        if series[0] == TABLE_COUNT and OTHERS in series and isinstance(rate, Rate)
    )
    assert others < 0.005 * expected


def test_created_and_dropped_tables_appear_and_disappear_without_a_spike(big: Node, samples: Iterator[Sample]) -> None:
    """A spike would be a rate higher than twice the load's rate."""
    next(samples)
    with session(ADDRESS) as driver:
        for number in range(TABLES - 5, TABLES):
            driver.execute(f"DROP TABLE IF EXISTS big.t{number:03d}")
        created = Load(big, RATE, 25, "--keyspace", "fresh", "--tables", "3")
        seen: list[Sample] = []
        while len(seen) < PATIENCE_TICKS and not (seen and {"t000", "t001", "t002"} <= tables_of(seen[-1], "fresh")):
            seen.append(next(samples))
        assert {"t000", "t001", "t002"} <= tables_of(seen[-1], "fresh")
        created.wait()
        driver.execute("DROP KEYSPACE fresh")
    while len(seen) < 2 * PATIENCE_TICKS and tables_of(seen[-1], "fresh"):
        seen.append(next(samples))
    assert not tables_of(seen[-1], "fresh")
    figures = [row[key] for sample in seen for row in tables(sample) for key in ("reads_per_s", "writes_per_s")]
    assert all(figure is None or 0 <= figure <= 2 * RATE for figure in figures)


def tables_of(sample: Sample, keyspace: str) -> set[str]:
    return {row["table"] for row in tables(sample) if row["keyspace"] == keyspace and row["reads_per_s"] is not None}
