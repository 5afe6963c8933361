"""A node behind a fake Jolokia agent, read tick by tick."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from collector.model.mbean import METRICS, MBean, counter, histogram
from collector.model.mbean import gauge as any_gauge
from collector.model.metric import Aggregation, ScrapeInterval
from collector.model.snapshot import Scrape
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.selection import Selection
from tests.collector.fakes import FakeClock, FakeJolokia

gauge = partial(any_gauge, across=Aggregation.SUM)

RUNTIME = "java.lang:type=Runtime"
SERVICE = "org.apache.cassandra.db:type=StorageService"
POOL = METRICS + "type=ThreadPools,path={path},scope={pool},name="
TABLE = METRICS + "type=Table,keyspace={keyspace},scope={table},name="
KEYSPACE = METRICS + "type=Keyspace,keyspace={keyspace},name="
REQUEST = METRICS + "type=ClientRequest,scope={operation},name=Latency"
PENDING = METRICS + "type=Compaction,name=PendingTasks"

REQUESTS = counter("requests_total", "Text.", REQUEST, only={"operation": ("Read", "Write")})
DURATIONS = histogram("request_seconds", "Text.", REQUEST, only={"operation": ("Read", "Write")})
ACTIVE = gauge("pool_active", "Text.", POOL + "ActiveTasks")
SSTABLES = gauge("table_sstables", "Text.", TABLE + "LiveSSTableCount")
READS = counter("keyspace_reads_total", "Text.", KEYSPACE + "ReadLatency")
SIZE = gauge("table_bytes", "Text.", TABLE + "LiveDiskSpaceUsed", "Count", scrape_interval=ScrapeInterval.SLOW)
COMPACTIONS = gauge("compaction_pending", "Text.", PENDING)

Beans = dict[str, dict[str, Any]]
# A table budget that exceeds the number of tables in any test.
ALL_TABLES = Selection(tables=1000)


def common(start_ms: int = 1_700_000_000_000, schema: str = "v1") -> Beans:
    """Return the MBeans that every node has."""
    return {RUNTIME: {"StartTime": start_ms}, SERVICE: {"SchemaVersion": schema}}


def requests() -> Beans:
    return {
        REQUEST.format(operation=operation): {"Count": 100, "values()": [0] * 128} for operation in ("Read", "Write")
    }


def pool(name: str, path: str = "request") -> Beans:
    return {POOL.format(path=path, pool=name) + "ActiveTasks": {"Value": 2}}


def table(keyspace: str, name: str) -> Beans:
    labels = {"keyspace": keyspace, "table": name}
    return {
        TABLE.format_map(labels) + "LiveSSTableCount": {"Value": 3},
        TABLE.format_map(labels) + "LiveDiskSpaceUsed": {"Count": 4096},
        TABLE.format_map(labels) + "SnapshotsSize": {"Value": 0},
        KEYSPACE.format_map(labels) + "ReadLatency": {"Count": 7},
    }


def real_table(keyspace: str, name: str, reads: int = 0, writes: int = 0) -> Beans:
    """Return the MBeans that the real catalogue reads for a table: latencies, the number of SSTables and disk space."""
    prefix = TABLE.format(keyspace=keyspace, table=name)
    beans: Beans = {
        f"{prefix}{operation}{suffix}": {"Count": count, "values()": [0] * 128}
        for operation, count in (("Read", reads), ("Write", writes), ("Range", 0))
        for suffix in ("Latency", "TotalLatency")
    }
    return beans | {prefix + name: {"Value": 3, "Count": 3} for name in ("LiveSSTableCount", "LiveDiskSpaceUsed")}


def real_keyspace(keyspace: str, reads: int = 0, writes: int = 0) -> Beans:
    """Return the MBeans that the real catalogue reads for a keyspace."""
    prefix = KEYSPACE.format(keyspace=keyspace)
    return {
        f"{prefix}{operation}{suffix}": {"Count": count, "values()": [0] * 128}
        for operation, count in (("Read", reads), ("Write", writes), ("Range", 0))
        for suffix in ("Latency", "TotalLatency")
    }


class Node:
    """A fake node and the source that reads it; without a `selection`, the source reads all tables."""

    def __init__(
        self, read_beans: Sequence[MBean], *node_beans: Beans, selection: Selection | None = None, takes_s: float = 0.0
    ) -> None:
        self.clock = FakeClock()
        self.jolokia = FakeJolokia(clock=self.clock, takes_s=takes_s)
        self.add(common(), *node_beans)
        self.source = MBeanSource(self.jolokia, read_beans, selection or ALL_TABLES, self.clock)

    def add(self, *node_beans: Beans) -> None:
        for beans in node_beans:
            self.jolokia.beans.update(beans)

    def restart(self) -> None:
        self.jolokia.beans[RUNTIME]["StartTime"] += 60_000

    def alter(self) -> None:
        """Change the schema."""
        self.jolokia.beans[SERVICE]["SchemaVersion"] += "+"

    def tick(self, after_s: float = 1.0) -> Scrape:
        """Read the source, and advance the clock to `after_s` seconds after the read began."""
        began_s = self.clock.monotonic_s()
        try:
            return self.source.read(1.0)
        finally:
            self.clock.busy(began_s + after_s - self.clock.monotonic_s())

    def read_times(self, mbean: str, ticks: int, interval_s: float = 1.0) -> list[float]:
        """Run this many ticks, and return the times at which the MBean was read, in seconds after the first tick."""
        began_s = self.clock.monotonic_s()
        times_s = []
        for _ in range(ticks):
            at_s = self.clock.monotonic_s() - began_s
            self.tick(interval_s)
            if mbean in self.jolokia.last_read():
                times_s.append(round(at_s, 3))
        return times_s
