"""Limits of control groups apply to the groups below them, in both versions and where a machine mixes them."""

from pathlib import Path

from collector.model.metric import Value
from collector.node.host.cgroup import read
from collector.node.host.kernel_files import Host

PID = 4242
ROOT = "sys/fs/cgroup/"
SERVICE, SLICE = ROOT + "system.slice/cassandra.service/", ROOT + "system.slice/"
NO_LIMIT_1 = "9223372036854771712\n"
GROUP_2 = {
    "cgroup.procs": f"{PID}\n",
    "memory.max": "max\n",
    "memory.current": "1000\n",
    "cpu.max": "max 100000\n",
    "cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
}
LIMITS_2 = {
    "memory.max": "8589934592\n",
    "memory.current": "7000\n",
    "cpu.max": "200000 100000\n",
    "cpu.stat": "usage_usec 5\nnr_periods 100\nnr_throttled 90\nthrottled_usec 45000000\n",
}
Files = dict[str, str]


def at(folder: str, files: Files) -> Files:
    return {folder + name: text for name, text in files.items()}


def values(tmp_path: Path, files: Files, groups: str = "0::/system.slice/cassandra.service\n") -> dict[str, Value]:
    """Return the values of a process in these control groups, by the last part of the metric's name."""
    for name, text in {**files, f"proc/{PID}/cgroup": groups}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return {series[0].removeprefix("casstat_cgroup_"): value for series, value in read(Host(tmp_path, PID)).items()}


LIMITED = {
    "memory_limit_bytes": 8589934592,
    "memory_bytes": 7000,
    "cpu_limit": 2.0,
    "cpu_throttled_seconds_total": 45_000_000_000,
}


def test_the_limits_of_a_parent_group_apply(tmp_path: Path) -> None:
    assert values(tmp_path, {**at(SERVICE, GROUP_2), **at(SLICE, LIMITS_2)}) == LIMITED


def test_the_limits_of_the_root_of_a_containers_mount_apply(tmp_path: Path) -> None:
    assert values(tmp_path, {**at(SERVICE, GROUP_2), **at(ROOT, LIMITS_2)}) == LIMITED


def test_the_lowest_limit_counts_with_the_throttled_time_of_its_group(tmp_path: Path) -> None:
    own = {**GROUP_2, "memory.max": "4000000000\n", "cpu.max": "400000 100000\n", "cpu.stat": "throttled_usec 7\n"}
    result = values(tmp_path, {**at(SERVICE, own), **at(SLICE, LIMITS_2)})
    assert result == {**LIMITED, "memory_limit_bytes": 4_000_000_000, "memory_bytes": 1000}


def test_a_threshold_that_may_be_exceeded_is_no_limit(tmp_path: Path) -> None:
    own = {**GROUP_2, "memory.high": "4000000000\n", "cpu.max.burst": "100000\n"}
    assert "memory_limit_bytes" not in values(tmp_path, at(SERVICE, own))


def test_without_a_limit_the_groups_own_usage_and_throttled_time_are_read(tmp_path: Path) -> None:
    assert values(tmp_path, at(SERVICE, GROUP_2)) == {"memory_bytes": 1000, "cpu_throttled_seconds_total": 0}


GROUPS_1 = "12:memory:/docker/abc/inner\n4:cpu,cpuacct:/docker/abc/inner\n1:name=systemd:/docker/abc\n0::/\n"
MEMORY_1, CPU_1 = ROOT + "memory/docker/abc/", ROOT + "cpu,cpuacct/docker/abc/"
OWN_MEMORY_1 = {
    "cgroup.procs": f"{PID}\n",
    "memory.limit_in_bytes": NO_LIMIT_1,
    "memory.usage_in_bytes": "5\n",
}
PARENTS_1 = {
    MEMORY_1 + "memory.limit_in_bytes": "4294967296\n",
    CPU_1 + "cpu.cfs_quota_us": "200000\n",
    CPU_1 + "cpu.cfs_period_us": "100000\n",
    CPU_1 + "cpu.stat": "nr_periods 9\nnr_throttled 5\nthrottled_time 45000000000\n",
    **at(CPU_1 + "inner/", {"cgroup.procs": f"{PID}\n", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}),
}


def test_the_limits_of_a_version_1_parent_apply(tmp_path: Path) -> None:
    result = values(tmp_path, {**PARENTS_1, **at(MEMORY_1 + "inner/", OWN_MEMORY_1)}, GROUPS_1)
    assert result == {**LIMITED, "memory_limit_bytes": 4294967296, "memory_bytes": 5}


def test_the_limit_that_version_1_states_counts_even_if_its_group_is_hidden(tmp_path: Path) -> None:
    own = {**OWN_MEMORY_1, "memory.stat": "cache 1\nhierarchical_memory_limit 4294967296\n"}
    assert values(tmp_path, at(ROOT + "memory/", own), GROUPS_1) == {
        "memory_limit_bytes": 4294967296,
        "memory_bytes": 5,
    }


def test_a_version_1_parent_without_hierarchy_sets_no_limit(tmp_path: Path) -> None:
    own = {**OWN_MEMORY_1, "memory.stat": f"hierarchical_memory_limit {NO_LIMIT_1}"}
    result = values(tmp_path, {**PARENTS_1, **at(MEMORY_1 + "inner/", own)}, GROUPS_1)
    assert "memory_limit_bytes" not in result
    assert result["memory_bytes"] == 5


def test_controllers_of_both_versions_are_read(tmp_path: Path) -> None:
    unified = ROOT + "unified/"
    service = unified + "system.slice/cassandra.service/"
    files = {**at(service, GROUP_2), **at(unified + "system.slice/", LIMITS_2), **PARENTS_1}
    groups = "4:cpu,cpuacct:/docker/abc/inner\n0::/system.slice/cassandra.service\n"
    assert values(tmp_path, files, groups) == LIMITED
