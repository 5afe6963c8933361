"""The file systems that contain Cassandra's data directories."""

import os

from collector.file_access import file_errors
from collector.model.metric import Aggregation, Kind, Metric, Owner, ScrapeInterval, Values
from collector.model.snapshot import SourceError
from collector.node.host.kernel_files import Host

_SIZE, _FREE, _AVAILABLE = METRICS = tuple(
    Metric(
        f"node_filesystem_{name}_bytes",
        Kind.GAUGE,
        "bytes",
        text,
        ("mountpoint",),
        ScrapeInterval.SLOW,
        across=Aggregation.SUM,
        owner=Owner.MACHINE,
    )
    for name, text in {
        "size": "Size of the file system in bytes.",
        "free": "Free disk space in bytes.",
        "avail": "Free disk space available to unprivileged users, in bytes.",
    }.items()
)


def read(host: Host) -> Values:
    """Return the size and free space of each file system that contains a data directory. Raises SourceError."""
    values: Values = {}
    for mount in dict.fromkeys(mount_point(str(directory)) for directory in host.directories):
        with file_errors(mount, SourceError):
            status = os.statvfs(mount)
        values[_SIZE.name, mount] = status.f_blocks * status.f_frsize
        values[_FREE.name, mount] = status.f_bfree * status.f_frsize
        values[_AVAILABLE.name, mount] = status.f_bavail * status.f_frsize
    return values


def mount_point(directory: str) -> str:
    path = os.path.realpath(directory)
    while not os.path.ismount(path):
        path = os.path.dirname(path)  # noqa: PTH120 - plain strings, as returned by realpath
    return path
