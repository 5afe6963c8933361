"""Names, units and attributes of metrics in OpenTelemetry.

Host metrics have the names of the semantic conventions for systems (version 1.29) where there are any. All other names
are those of Prometheus with a dot after the first word, without the suffixes that a translation to Prometheus adds
again: the unit and `_total`. Prometheus and the OpenTelemetry Collector therefore restore the names of /metrics. There
are no conventions for the metrics of a database server, so Cassandra's metrics keep their own names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

# The unit in UCUM, and the suffix that a translation to Prometheus adds (`_ratio` to gauges with the unit 1).
UNITS = {"seconds": ("s", "_seconds"), "bytes": ("By", "_bytes"), "ratio": ("1", "_ratio"), "1": ("", "")}
TOTAL = "_total"


@dataclass(frozen=True)
class OtlpName:
    """The identity of a metric in OpenTelemetry.

    renamed  new names of the metric's labels.
    fixed    attributes that distinguish metrics that become one.
    """

    name: str
    unit: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)


_DEVICE, _INTERFACE = {"device": "system.device"}, {"device": "network.interface.name"}
_MOUNTPOINT = {"mountpoint": "system.filesystem.mountpoint"}
_READ, _WRITE = {"disk.io.direction": "read"}, {"disk.io.direction": "write"}
_RECEIVE, _TRANSMIT = {"network.io.direction": "receive"}, {"network.io.direction": "transmit"}
_STATE = "system.memory.state"
CONVENTIONS = {
    "node_cpu_seconds_total": OtlpName("system.cpu.time", "s", {"cpu": "cpu.logical_number", "mode": "cpu.mode"}),
    "node_disk_read_bytes_total": OtlpName("system.disk.io", "By", _DEVICE, _READ),
    "node_disk_written_bytes_total": OtlpName("system.disk.io", "By", _DEVICE, _WRITE),
    "node_disk_reads_completed_total": OtlpName("system.disk.operations", "{operation}", _DEVICE, _READ),
    "node_disk_writes_completed_total": OtlpName("system.disk.operations", "{operation}", _DEVICE, _WRITE),
    "node_disk_reads_merged_total": OtlpName("system.disk.merged", "{operation}", _DEVICE, _READ),
    "node_disk_writes_merged_total": OtlpName("system.disk.merged", "{operation}", _DEVICE, _WRITE),
    "node_disk_read_time_seconds_total": OtlpName("system.disk.operation_time", "s", _DEVICE, _READ),
    "node_disk_write_time_seconds_total": OtlpName("system.disk.operation_time", "s", _DEVICE, _WRITE),
    "node_disk_io_time_seconds_total": OtlpName("system.disk.io_time", "s", _DEVICE),
    "node_filesystem_size_bytes": OtlpName("system.filesystem.limit", "By", _MOUNTPOINT),
    "node_filesystem_free_bytes": OtlpName(
        "system.filesystem.usage", "By", _MOUNTPOINT, {"system.filesystem.state": "free"}
    ),
    "node_memory_MemTotal_bytes": OtlpName("system.memory.limit", "By"),
    "node_memory_MemAvailable_bytes": OtlpName("system.linux.memory.available", "By"),
    "node_memory_MemFree_bytes": OtlpName("system.memory.usage", "By", fixed={_STATE: "free"}),
    "node_memory_Buffers_bytes": OtlpName("system.memory.usage", "By", fixed={_STATE: "buffers"}),
    "node_memory_Cached_bytes": OtlpName("system.memory.usage", "By", fixed={_STATE: "cached"}),
    "node_network_receive_bytes_total": OtlpName("system.network.io", "By", _INTERFACE, _RECEIVE),
    "node_network_transmit_bytes_total": OtlpName("system.network.io", "By", _INTERFACE, _TRANSMIT),
    "node_network_receive_packets_total": OtlpName("system.network.packets", "{packet}", _INTERFACE, _RECEIVE),
    "node_network_transmit_packets_total": OtlpName("system.network.packets", "{packet}", _INTERFACE, _TRANSMIT),
    "node_network_receive_errs_total": OtlpName("system.network.errors", "{error}", _INTERFACE, _RECEIVE),
    "node_network_transmit_errs_total": OtlpName("system.network.errors", "{error}", _INTERFACE, _TRANSMIT),
    "node_network_receive_drop_total": OtlpName("system.network.dropped", "{packet}", _INTERFACE, _RECEIVE),
    "node_network_transmit_drop_total": OtlpName("system.network.dropped", "{packet}", _INTERFACE, _TRANSMIT),
}


# These metrics would have the names of others. A translation to Prometheus does not repeat a suffix.
_AMBIGUOUS = {
    "cassandra_jvm_gc_seconds_total": OtlpName("cassandra.jvm_gc_seconds", "s"),
    "cassandra_pool_blocked_total": OtlpName("cassandra.pool_blocked_total", ""),
}


@lru_cache(maxsize=4096)
def otlp_name(name: str, unit: str) -> OtlpName:
    """Return the identity of a metric, given its name in Prometheus and its unit."""
    if known := CONVENTIONS.get(name) or _AMBIGUOUS.get(name):
        return known
    ucum, suffix = UNITS.get(unit, ("", ""))
    stem = name.removesuffix(TOTAL).removesuffix(suffix)
    first, _, rest = stem.partition("_")
    return OtlpName(f"{first}.{rest}" if rest else first, ucum)
