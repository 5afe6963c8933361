"""Every metric in the catalogue is read from real nodes, except those listed here."""

from cli.setup.demo.demo_node import Node
from collector.model.mbean import MBean
from collector.model.metric import Kind, ScrapeInterval
from collector.model.rates import Readings, rates, update_readings
from collector.node.catalogue import BEANS, CATALOGUE, HOST
from collector.node.metrics.decaying_percentiles import DECAYED
from collector.node.selection import DEFAULT_TABLES, Selection
from tests.real.node_snapshots import snapshots
from tests.real.programs import Load, prepare

# These metrics appear only after an event such as the first hint, stream or compaction, or once there are SSTables.
ON_FIRST_USE = {
    "cassandra_hints_succeeded_total",
    "cassandra_hints_failed_total",
    "cassandra_hints_timed_out_total",
    "cassandra_streaming_in_bytes_total",
    "cassandra_streaming_out_bytes_total",
    "cassandra_streams_active",
    "cassandra_compaction_pending_by_table",
    "cassandra_compaction_progress",
    "cassandra_compaction_size",
    "cassandra_table_bloom_filter_false_ratio",
    "cassandra_table_repaired_ratio",
    "cassandra_table_compression_ratio",
    "cassandra_jvm_gc_last_seconds",
}
SINCE_4_1 = {
    "cassandra_client_request_aborts_total",
    "cassandra_client_requests_local_total",
    "cassandra_client_requests_remote_total",
    "cassandra_pool_oldest_task_seconds",
    "cassandra_native_pauses_total",
    "cassandra_paxos_v2",
}
# These metrics are present only in a control group with limits.
LIMITS = {"casstat_cgroup_memory_limit_bytes", "casstat_cgroup_cpu_limit"}
# The loopback interface has no known capacity, and disks of virtual machines often have no model.
UNKNOWN = {"node_network_speed_bytes", "casstat_machine_disks"}
KERNEL = {metric.name for part in HOST if part.name in ("pressure", "cgroup", "timekeeping") for metric in part.metrics}
BY_JOLOKIA = {bean.metric.name for bean in BEANS} | {metric.name for part in HOST for metric in part.metrics}
# Metrics that only nodetool reads, and decaying percentiles, which are read only if a policy denies access to buckets.
OTHER_SOURCES = set(CATALOGUE) - BY_JOLOKIA | {bean.metric.name for bean in BEANS if bean.metric.name in DECAYED}


def test_every_metric_is_read_or_listed_as_absent(jolokia_node: Node) -> None:
    prepare(jolokia_node)
    before: Readings = {}
    read, derived = set(), set()
    for number, snapshot in enumerate(snapshots(jolokia_node, Selection(keyspace="demo", table="*"))):
        sample = rates(CATALOGUE, before, snapshot)
        update_readings(before, snapshot)
        read |= {series[0] for scrape in snapshot.scrapes for series in scrape.values}
        derived |= {series[0] for series in sample.values}
        assert [event for event in sample.events if event.kind != "missed"] == []
        if number == 4:
            break
    old = SINCE_4_1 if jolokia_node.spec.version.startswith("4.0") else set()
    assert set(CATALOGUE) - read - ON_FIRST_USE - LIMITS - UNKNOWN - KERNEL - OTHER_SOURCES == old
    # Only metrics that may be read less often than every tick may lack rates.
    slow = {bean.metric.name for bean in BEANS if is_slow(bean)}
    assert read - derived <= slow


def is_slow(bean: MBean) -> bool:
    is_rare = bean.metric.scrape_interval is not ScrapeInterval.TICK or "keyspace" in bean.metric.labels
    return bean.metric.kind in (Kind.COUNTER, Kind.HISTOGRAM) and is_rare


def test_the_loads_tables_are_discovered_and_system_tables_are_left_out(node: Node) -> None:
    prepare(node, "--tables", "3")
    scrape = next(snapshots(node, Selection(tables=DEFAULT_TABLES))).scrapes[-1]
    tables = {series[1:3] for series in scrape.values if series[0] == "cassandra_table_live_sstables"}
    assert {("demo", "t000"), ("demo", "t001"), ("demo", "t002")} <= tables
    assert not any(keyspace.startswith("system") for keyspace, _ in tables)


def test_table_counters_match_the_reads_of_the_load(node: Node) -> None:
    prepare(node)
    selection = Selection(frozenset({"cassandra_table_operations_total"}), "demo", "t000")

    def reads() -> int:
        values = next(snapshots(node, selection)).scrapes[-1].values
        count = values["cassandra_table_operations_total", "demo", "t000", "Read"]
        assert isinstance(count, int)
        return count

    before = reads()
    counted = Load(node, 200, 3).wait()
    assert reads() - before == counted["reads"]
