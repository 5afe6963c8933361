"""Block device operations, bytes and times from /proc/diskstats (see Linux's admin-guide/iostats.rst)."""

from collector.model.metric import Aggregation, Kind, Metric, Owner, Series, Values
from collector.node.host.kernel_files import Host, read_text

SECTOR_BYTES = 512


def _metric(
    name: str,
    text: str,
    unit: str = "1",
    scale: float = 1.0,
    across: Aggregation = Aggregation.SUM,
    kind: Kind = Kind.COUNTER,
) -> Metric:
    return Metric(name, kind, unit, text, ("device",), scale=scale, across=across, owner=Owner.MACHINE)


# The metrics, in the order of the fields that follow the device name in /proc/diskstats.
COLUMNS = (
    _metric("node_disk_reads_completed_total", "Number of reads completed."),
    _metric("node_disk_reads_merged_total", "Number of reads merged."),
    _metric("node_disk_read_bytes_total", "Number of bytes read.", "bytes", SECTOR_BYTES),
    _metric("node_disk_read_time_seconds_total", "Time spent by all reads, in seconds.", "seconds", 1e-3),
    _metric("node_disk_writes_completed_total", "Number of writes completed."),
    _metric("node_disk_writes_merged_total", "Number of writes merged."),
    _metric("node_disk_written_bytes_total", "Number of bytes written.", "bytes", SECTOR_BYTES),
    _metric("node_disk_write_time_seconds_total", "Time spent by all writes, in seconds.", "seconds", 1e-3),
    _metric("node_disk_io_now", "Number of requests in progress.", kind=Kind.GAUGE),
    _metric(
        "node_disk_io_time_seconds_total",
        "Time with at least one request in progress, in seconds.",
        "seconds",
        1e-3,
        Aggregation.MEAN,
    ),
    _metric("node_disk_io_time_weighted_seconds_total", "Time spent by all requests, in seconds.", "seconds", 1e-3),
)
METRICS = COLUMNS
_BUSY = "node_disk_io_time_seconds_total"


class DiskReader:
    """Reads the metrics of the selected block devices.

    The disks of several data directories are combined into one device, named as in `Host.disk`. Its values are sums
    over the disks, except for the time with a request in progress: since the last read, it has increased as much as
    that of the busiest disk.
    """

    def __init__(self) -> None:
        self._last: Values = {}
        self._busy_ms = 0

    def __call__(self, host: Host) -> Values:
        values = parse(read_text(host.proc / "diskstats"), host.disks)
        if len(host.disks) < 2:
            return values
        busy = [(_BUSY, disk) for disk in host.disks]
        increases = [_number(values, series) - _number(self._last, series) for series in busy if series in self._last]
        self._busy_ms += max((increase for increase in increases if increase > 0), default=0)
        self._last = values
        combined: Values = {}
        for metric in COLUMNS:
            each = [_number(values, (metric.name, disk)) for disk in host.disks if (metric.name, disk) in values]
            # Without one of the disks, a sum would be too low.
            if len(each) == len(host.disks):
                combined[metric.name, host.disk] = self._busy_ms if metric.name == _BUSY else sum(each)
        return combined


def _number(values: Values, series: Series) -> int:
    value = values.get(series, 0)
    return value if isinstance(value, int) else 0


reader = DiskReader


def read(host: Host) -> Values:
    """Read the metrics of the selected block devices once."""
    return DiskReader()(host)


def parse(diskstats: str, selected: tuple[str, ...]) -> Values:
    """Parse /proc/diskstats for the selected devices or, if none are selected, for all devices that have been used."""
    values: Values = {}
    for line in diskstats.splitlines():
        _, _, device, *counts = line.split()
        if (device in selected) if selected else any(count != "0" for count in counts):
            for metric, count in zip(COLUMNS, counts, strict=False):
                values[metric.name, device] = int(count)
    return values
