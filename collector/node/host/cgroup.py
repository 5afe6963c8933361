"""Limits and usage of the Cassandra process's control group, version 1 or 2 (see cgroups(7))."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from collector.model.metric import Aggregation, Kind, Metric, Values
from collector.node.host.kernel_files import Host, read_text, text_in

_total = partial(Metric, kind=Kind.GAUGE, across=Aggregation.SUM)
_MEMORY_LIMIT = _total(
    "casstat_cgroup_memory_limit_bytes",
    unit="bytes",
    help="Memory limit of the process's control group in bytes: the lowest of the group and those above it; absent if "
    "there is none.",
)
_MEMORY = _total(
    "casstat_cgroup_memory_bytes",
    unit="bytes",
    help="Memory used by the control group that sets the limit, or by the process's own, in bytes, including file "
    "cache.",
)
_CPUS = _total(
    "casstat_cgroup_cpu_limit",
    unit="1",
    help="CPU limit of the process's control group, in processors: the lowest of the group and those above it; absent "
    "if there is none.",
)
_THROTTLED = Metric(
    "casstat_cgroup_cpu_throttled_seconds_total",
    Kind.COUNTER,
    "seconds",
    "Time for which the control group that sets the CPU limit was throttled, in seconds.",
    scale=1e-9,
)
METRICS = (_MEMORY_LIMIT, _MEMORY, _CPUS, _THROTTLED)

# Version 1 represents "no limit" as a number close to 2^63.
_NO_LIMIT_BYTES = 1 << 60
# Where a hierarchy may be mounted below /sys/fs/cgroup, by controller; "" is version 2, alone or beside version 1.
_MOUNTS = {"memory": ("memory",), "cpu": ("cpu", "cpu,cpuacct", "cpuacct,cpu"), "": ("", "unified")}


class _Limit(NamedTuple):
    """A control group and a limit that it sets."""

    group: Path
    amount: float


def read(host: Host) -> Values:
    """Read the Cassandra process's control group. Returns no values if the process or its group is not visible.

    A limit applies to a group and to all groups below it, so the lowest limit between the process's own group and the
    root counts; memory usage and throttled time are those of the group that sets it. Limits above the root of a
    container's own mount are not visible.
    """
    if not host.process_exists:
        return {}
    groups = parse_groups(read_text(host.process_dir / "cgroup"))
    # A machine may have some controllers in version 1 and others in version 2.
    memory, cpu = (controller if controller in groups else "" for controller in ("memory", "cpu"))
    return {
        **_memory(_path(host, groups, memory), is_version_1=bool(memory)),
        **_cpu(_path(host, groups, cpu), is_version_1=bool(cpu)),
    }


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


def _path(host: Host, groups: Mapping[str, str], controller: str) -> list[Path]:
    """Return the control groups from the Cassandra process's own to the root of the mount; [] if it is not visible.

    The path in /proc is relative to a root that may be hidden from casstat: in a sidecar container, only that
    container's own group is mounted. In that case, the mount in Cassandra's own namespace is used.
    """
    parts = PurePosixPath(groups.get(controller, "/")).parts[1:]
    for root in (host.root, host.process_dir / "root"):
        for name in _MOUNTS[controller]:
            mount = root / "sys/fs/cgroup" / name
            for inside in (parts, ()):
                if ".." not in inside and str(host.pid) in text_in(mount.joinpath(*inside, "cgroup.procs")).split():
                    return [mount.joinpath(*inside[:length]) for length in range(len(inside), -1, -1)]
    return []


def _memory(path: Sequence[Path], *, is_version_1: bool) -> Values:
    """Return the memory limit and the usage of the group that sets it. `memory.high` may be exceeded."""
    limit_file, usage_file = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes") if is_version_1 else ("memory.max", "memory.current")
    )
    limits = [
        _Limit(group, int(text))
        for group in path
        if (text := text_in(group / limit_file)).isdigit() and int(text) < _NO_LIMIT_BYTES
    ]
    lowest = min(limits, key=lambda limit: limit.amount, default=None)
    values: Values = {}
    # Version 1 states the limit that applies: it may be that of a hidden group, or parents' limits may not apply.
    stated = _fields(path[0], "memory.stat").get("hierarchical_memory_limit") if path and is_version_1 else None
    if stated is not None and (lowest is None or stated != lowest.amount):
        lowest = next((limit for limit in limits if limit.amount == stated), None)
        if stated < _NO_LIMIT_BYTES:
            values[(_MEMORY_LIMIT.name,)] = stated
    elif lowest is not None:
        values[(_MEMORY_LIMIT.name,)] = int(lowest.amount)
    usages = [text_in(group / usage_file) for group in (*((lowest.group,) if lowest else ()), *path[:1])]
    if usage := next((text for text in usages if text.isdigit()), ""):
        values[(_MEMORY.name,)] = int(usage)
    return values


def _cpu(path: Sequence[Path], *, is_version_1: bool) -> Values:
    limits = []
    for group in path:
        if is_version_1:
            quota, period = text_in(group / "cpu.cfs_quota_us"), text_in(group / "cpu.cfs_period_us")
        else:
            quota, _, period = text_in(group / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            limits.append(_Limit(group, int(quota) / int(period)))
    lowest = min(limits, key=lambda limit: limit.amount, default=None)
    values: Values = {(_CPUS.name,): lowest.amount} if lowest else {}
    field, nanoseconds = ("throttled_time", 1) if is_version_1 else ("throttled_usec", 1000)
    for group in (lowest.group,) if lowest else path[:1]:
        throttled = _fields(group, "cpu.stat").get(field)
        if throttled is not None:
            values[(_THROTTLED.name,)] = throttled * nanoseconds
    return values


def _fields(group: Path, name: str) -> dict[str, int]:
    """Return the numbers in one of a group's files of names and numbers."""
    fields = (line.split() for line in text_in(group / name).splitlines())
    return {field[0]: int(field[1]) for field in fields if len(field) == 2 and field[1].isdigit()}
