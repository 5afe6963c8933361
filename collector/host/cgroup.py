"""Limits and usage of the Cassandra process's control group, version 1 or 2 (see cgroups(7))."""

from collections.abc import Mapping
from pathlib import Path

from collector.host.kernel_files import Host, read_text
from collector.model.metric import Aggregation, Kind, Metric, Values
from collector.model.snapshot import SourceError

_LIMIT = Metric(
    "casstat_cgroup_memory_limit_bytes",
    Kind.GAUGE,
    "bytes",
    "Memory limit of the control group in bytes; absent if there is no limit.",
    across=Aggregation.SUM,
)
_MEMORY = Metric(
    "casstat_cgroup_memory_bytes",
    Kind.GAUGE,
    "bytes",
    "Memory used by the control group in bytes, including file cache.",
    across=Aggregation.SUM,
)
_CPUS = Metric(
    "casstat_cgroup_cpu_limit",
    Kind.GAUGE,
    "1",
    "CPU limit of the control group, in processors; absent if there is no limit.",
    across=Aggregation.SUM,
)
_THROTTLED = Metric(
    "casstat_cgroup_cpu_throttled_seconds_total",
    Kind.COUNTER,
    "seconds",
    "Time the control group was throttled by its CPU limit, in seconds.",
    scale=1e-9,
)
METRICS = (_LIMIT, _MEMORY, _CPUS, _THROTTLED)

# Version 1 represents "no limit" as a number close to 2^63.
_NO_LIMIT_BYTES = 1 << 60


def read(host: Host) -> Values:
    """Read the Cassandra process's control group. Returns no values if the process or its group is not visible."""
    if not host.process_exists:
        return {}
    groups = parse_groups(read_text(host.process_dir / "cgroup"))
    if "memory" in groups or "cpu" in groups:
        return _version_1(_folder(host, groups, "memory"), _folder(host, groups, "cpu"))
    return _version_2(_folder(host, groups, ""))


def origin(host: Host) -> str:
    """Return the Cassandra process's PID as the counters' origin."""
    return str(host.pid)


def parse_groups(text: str) -> dict[str, str]:
    """Parse /proc/PID/cgroup; return the group's path for each controller. The key for version 2 is ""."""
    groups = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def _folder(host: Host, groups: Mapping[str, str], controller: str) -> Path | None:
    """Return the directory of the control group that contains the Cassandra process, or None if it is not visible.

    The path in /proc is relative to a root that may be hidden from casstat: in a sidecar container, only that
    container's own group is mounted. In that case, the mount in Cassandra's own namespace is used.
    """
    for root in (host.root, host.process_dir / "root"):
        mount = root / "sys/fs/cgroup" / controller
        for folder in (mount / groups.get(controller, "/").lstrip("/"), mount):
            if str(host.pid) in _line(folder, "cgroup.procs").split():
                return folder
    return None


def _version_1(memory: Path | None, cpu: Path | None) -> Values:
    values: Values = {}
    limit, usage = _line(memory, "memory.limit_in_bytes"), _line(memory, "memory.usage_in_bytes")
    if limit.isdigit() and int(limit) < _NO_LIMIT_BYTES:
        values[(_LIMIT.name,)] = int(limit)
    if usage.isdigit():
        values[(_MEMORY.name,)] = int(usage)
    quota, period = _line(cpu, "cpu.cfs_quota_us"), _line(cpu, "cpu.cfs_period_us")
    return {**values, **_cpu(quota, period, _line(cpu, "cpu.stat"), "throttled_time", 1)}


def _version_2(folder: Path | None) -> Values:
    values: Values = {}
    for metric, name in ((_LIMIT, "memory.max"), (_MEMORY, "memory.current")):
        if (amount := _line(folder, name)).isdigit():
            values[(metric.name,)] = int(amount)
    quota, _, period = _line(folder, "cpu.max").partition(" ")
    return {**values, **_cpu(quota, period, _line(folder, "cpu.stat"), "throttled_usec", 1000)}


def _cpu(quota: str, period: str, stat: str, throttled: str, nanoseconds: int) -> Values:
    values: Values = {}
    if quota.isdigit() and period.isdigit() and int(period):
        values[(_CPUS.name,)] = int(quota) / int(period)
    fields = dict(line.split(" ", 1) for line in stat.splitlines() if " " in line)
    if throttled in fields:
        values[(_THROTTLED.name,)] = int(fields[throttled]) * nanoseconds
    return values


def _line(folder: Path | None, name: str) -> str:
    """Return the content of one of the group's files, or "" if the group is unknown or the file cannot be read."""
    if folder is None:
        return ""
    try:
        return read_text(folder / name).strip()
    except SourceError:
        return ""
