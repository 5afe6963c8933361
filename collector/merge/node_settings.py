"""The settings of a node that its recording contains: versions, location, transport, machine, JVM and data."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.merge.merge_job import NodeRun
from collector.model.metric import Series
from collector.model.snapshot import IDENTITY_LABELS
from collector.node.metrics.tables import is_system_keyspace

if TYPE_CHECKING:
    from collector.merge.node_columns import NodeColumns

SERIES: Mapping[Series, str] = {
    ("cassandra_release_version",): "cassandra",
    ("cassandra_schema_version",): "schema",
    **IDENTITY_LABELS,
    ("casstat_machine_processors",): "processors",
    ("casstat_machine_kernel",): "kernel",
    ("casstat_machine_disks",): "disks",
    ("cassandra_jvm_name",): "jvm_name",
    ("cassandra_jvm_version",): "jvm_version",
    ("cassandra_compaction_parameters",): "compaction",
}
"""Maps each series that contains a setting to the setting's name in `NodeSettings`."""
SIZES: Mapping[Series, str] = {
    ("node_memory_MemTotal_bytes",): "memory",
    ("cassandra_jvm_heap_max_bytes",): "heap",
    ("cassandra_load_bytes",): "data",
}
"""Maps each series with a size in bytes to the setting's name."""
_COLLECTIONS, _CONSISTENCY = "cassandra_jvm_gc_seconds_total", "cassandra_requests_by_consistency_total"
_REPLICATION = "cassandra_keyspace_replication"
NEEDS: frozenset[str | Series] = frozenset((*(series[0] for series in SIZES), _COLLECTIONS, _CONSISTENCY))
"""The metrics from which settings are read, in addition to texts."""


@dataclass(frozen=True)
class NodeSettings:
    """The settings of a node; "" for one that is unknown.

    cassandra    the version of Cassandra.
    schema       the version of the schema, which changes with every change of the schema.
    transport    how the node was read, such as "jolokia".
    processors   the number and the model of the machine's processors.
    memory       the size of the machine's memory.
    kernel       the release of its kernel.
    disks        the models of the disks with data.
    heap         the maximum size of the heap.
    collectors   the garbage collectors.
    compaction   the compaction of the tables outside of system keyspaces.
    replication  the replication of these keyspaces.
    consistency  the consistency levels of requests during the run.
    data         the size of the data at the beginning.
    """

    cassandra: str = ""
    schema: str = ""
    cluster: str = ""
    dc: str = ""
    rack: str = ""
    transport: str = ""
    processors: str = ""
    memory: str = ""
    kernel: str = ""
    disks: str = ""
    jvm_name: str = ""
    jvm_version: str = ""
    heap: str = ""
    collectors: str = ""
    compaction: str = ""
    replication: str = ""
    consistency: str = ""
    data: str = ""

    @property
    def jvm(self) -> str:
        return " ".join(filter(None, (self.jvm_name, self.jvm_version)))


def settings_of(run: NodeRun) -> NodeSettings:
    """Return a node's settings: the last known texts in its intervals, and the first known sizes.

    A short run may contain no reading of a text, because versions and locations are read only once a minute. Its
    recording begins earlier than the run, or with the first tick, which belongs to no interval.
    """
    texts, replication = _settings_in(run.columns.outside), _replication_in(run.columns.outside)
    for values in filter(None, run.columns.texts):
        texts |= _settings_in(values)
        replication |= _replication_in(values)
    sizes, collectors, levels = _numbers_in(run.columns)
    return NodeSettings(
        **texts,
        **sizes,
        replication=", ".join(f"{keyspace}: {text}" for keyspace, text in sorted(replication.items())),
        transport=run.head.way,
        collectors=", ".join(sorted(collectors)),
        consistency=", ".join(sorted(levels)),
    )


def _numbers_in(node: "NodeColumns") -> tuple[Mapping[str, str], Set[str], Set[str]]:
    """Return the sizes of a node by name, its garbage collectors, and the consistency levels of its requests."""
    sizes = {}
    for series, name in SIZES.items():
        if series in node.sums.gauges:
            number, total, *_ = node.sums.gauges[series]
            means = (total[number > 0] / number[number > 0]).tolist()
            if size := next((mean for mean in means if mean > 0), None):
                sizes[name] = size_text(size)
    counters = node.sums.counters
    collectors = {
        label for series in counters if series[0] == _COLLECTIONS and counters[series][1].any() for label in series[1:]
    }
    levels = {
        " ".join(series[1:]) for series in counters if series[0] == _CONSISTENCY and (counters[series][0] > 0).any()
    }
    return sizes, collectors, levels


def size_text(size: float) -> str:
    """Return a size in bytes with three significant digits and a binary unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        # From here on, three digits would be 1000.
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB" if size < 999.5 else f"{size:.0f} TiB"


def _replication_in(values: Mapping[Series, object]) -> dict[str, str]:
    """Return the replication of the keyspaces of users."""
    return {
        series[1]: str(value)
        for series, value in values.items()
        if series[0] == _REPLICATION and len(series) > 1 and not is_system_keyspace(series[1])
    }


def _settings_in(values: Mapping[Series, object]) -> dict[str, str]:
    return {name: str(values[series]) for series, name in SERIES.items() if series in values}
