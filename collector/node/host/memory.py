"""Memory metrics, read from /proc/meminfo (proc(5))."""

from collector.model.metric import Aggregation, Kind, Metric, Owner, Values, WideColumn
from collector.node.host.kernel_files import Host, read_text

FIELDS = {
    "MemTotal": "Total memory in bytes.",
    "MemFree": "Unused memory in bytes.",
    "MemAvailable": "Memory available to programs without swapping, in bytes.",
    "Buffers": "Memory used for raw disk blocks, in bytes.",
    "Cached": "Memory used by the page cache, in bytes.",
    "Dirty": "Memory waiting to be written to disk, in bytes.",
    "Writeback": "Memory being written to disk, in bytes.",
    "SwapTotal": "Total swap space in bytes.",
    "SwapFree": "Unused swap space in bytes.",
}
_COLUMNS = {
    "MemAvailable": ("memory_available_mb", "AvailMB", "Memory available to programs without swapping, MiB"),
    "Cached": ("page_cache_mb", "CacheMB", "Memory used by the page cache, MiB"),
    "Dirty": ("dirty_mb", "DirtyMB", "Memory waiting to be written to disk, MiB"),
}
METRICS = tuple(
    Metric(
        f"node_memory_{field}_bytes",
        Kind.GAUGE,
        "bytes",
        text,
        scale=1024,
        columns=(WideColumn(*_COLUMNS[field], scale=1 / 2**20),) if field in _COLUMNS else (),
        across=Aggregation.SUM,
        owner=Owner.MACHINE,
    )
    for field, text in FIELDS.items()
)


def read(host: Host) -> Values:
    """Read the machine's memory metrics from /proc/meminfo, where sizes are in KiB."""
    values: Values = {}
    for line in read_text(host.proc / "meminfo").splitlines():
        field, _, amount = line.partition(":")
        if field in FIELDS:
            values[(f"node_memory_{field}_bytes",)] = int(amount.split()[0])
    return values
