"""Memory, from /proc/meminfo (proc(5))."""

from collector.host.kernel_files import Host, read_text
from collector.model.metric import Aggregation, Kind, Metric, Owner, Values, WideColumn

FIELDS = {
    "MemTotal": "Memory of the machine.",
    "MemFree": "Memory that nothing uses.",
    "MemAvailable": "Memory that a program could have without swapping.",
    "Buffers": "Raw disk blocks in memory.",
    "Cached": "Files in memory.",
    "Dirty": "Memory that waits to be written to disk.",
    "Writeback": "Memory that is being written to disk.",
    "SwapTotal": "Swap space.",
    "SwapFree": "Swap space that nothing uses.",
}
_COLUMNS = {
    "MemAvailable": (WideColumn("memory_available_mb", "AvailMB", scale=1 / 2**20),),
    "Cached": (WideColumn("page_cache_mb", "CacheMB", scale=1 / 2**20),),
    "Dirty": (WideColumn("dirty_mb", "DirtyMB", scale=1 / 2**20),),
}
METRICS = tuple(
    Metric(
        f"node_memory_{field}_bytes",
        Kind.GAUGE,
        "bytes",
        text,
        scale=1024,
        columns=_COLUMNS.get(field, ()),
        across=Aggregation.SUM,
        owner=Owner.MACHINE,
    )
    for field, text in FIELDS.items()
)


def read(host: Host) -> Values:
    """Read the machine's memory."""
    return parse(read_text(host.proc / "meminfo"))


def parse(meminfo: str) -> Values:
    """Take /proc/meminfo apart; its unit is KiB."""
    values: Values = {}
    for line in meminfo.splitlines():
        field, _, rest = line.partition(":")
        if field in FIELDS:
            values[(f"node_memory_{field}_bytes",)] = int(rest.split()[0])
    return values
