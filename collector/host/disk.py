"""Block devices: operations, bytes and waiting, from /proc/diskstats (Linux' Documentation/admin-guide/iostats)."""

from collector.host.kernel_files import Host, read_text
from collector.model.metric import Aggregation, Kind, Metric, Owner, Values

SECTOR_BYTES = 512


def _counter(
    name: str, text: str, unit: str = "1", scale: float = 1.0, across: Aggregation = Aggregation.SUM
) -> Metric:
    return Metric(name, Kind.COUNTER, unit, text, ("device",), scale=scale, across=across, owner=Owner.MACHINE)


# In the order of the file's columns.
COLUMNS = (
    _counter("node_disk_reads_completed_total", "Reads completed."),
    _counter("node_disk_reads_merged_total", "Reads merged into another."),
    _counter("node_disk_read_bytes_total", "Bytes read.", "bytes", SECTOR_BYTES),
    _counter("node_disk_read_time_seconds_total", "Time of all reads, added up.", "seconds", 1e-3),
    _counter("node_disk_writes_completed_total", "Writes completed."),
    _counter("node_disk_writes_merged_total", "Writes merged into another."),
    _counter("node_disk_written_bytes_total", "Bytes written.", "bytes", SECTOR_BYTES),
    _counter("node_disk_write_time_seconds_total", "Time of all writes, added up.", "seconds", 1e-3),
    Metric(
        "node_disk_io_now",
        Kind.GAUGE,
        "1",
        "Requests under way.",
        ("device",),
        across=Aggregation.SUM,
        owner=Owner.MACHINE,
    ),
    _counter(
        "node_disk_io_time_seconds_total",
        "Time with at least one request under way.",
        "seconds",
        1e-3,
        Aggregation.MEAN,
    ),
    _counter("node_disk_io_time_weighted_seconds_total", "Time of all requests, added up.", "seconds", 1e-3),
)
METRICS = COLUMNS


def read(host: Host) -> Values:
    """Read the host's devices."""
    return parse(read_text(host.proc / "diskstats"), host.disks)


def parse(diskstats: str, wanted: tuple[str, ...]) -> Values:
    """Take /proc/diskstats apart, for the wanted devices or (without any) for all that were ever used."""
    values: Values = {}
    for line in diskstats.splitlines():
        _, _, device, *counts = line.split()
        if (device in wanted) if wanted else any(count != "0" for count in counts):
            for metric, count in zip(COLUMNS, counts, strict=False):
                values[metric.name, device] = int(count)
    return values
