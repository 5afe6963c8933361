"""Machine metrics, read from a small captured file tree."""

from dataclasses import replace
from pathlib import Path

import pytest

from collector.model.metric import Kind, Values
from collector.model.snapshot import Scrape, SourceError
from collector.node.catalogue import HOST
from collector.node.host import timekeeping
from collector.node.host.host_source import HostSource
from collector.node.host.kernel_files import MAX_FILE_BYTES, Host, read_text
from collector.node.host.process import PAGE_BYTES
from collector.node.host.timekeeping import ClockState
from tests.collector import captures
from tests.collector.fakes import FakeClock

CASSANDRA, OTHER = 4242, 4243
"""Two processes in the captured file tree: one in a version 2 control group, one in a version 1 control group."""
PARTS = {part.name: part for part in HOST}
NODE = Host(captures.HOST, CASSANDRA)


def read(name: str, host: Host = NODE) -> Values:
    scrape = HostSource(PARTS[name], lambda: host, FakeClock()).read(1.0)
    assert scrape.source == name
    assert scrape.problem == ""
    return dict(scrape.values)


def tree(root: Path, files: dict[str, str]) -> Host:
    """Return a simulated machine with only these files and a Cassandra process."""
    for name, text in {f"proc/{CASSANDRA}/comm": "java\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Host(root, CASSANDRA)


def test_cpu_time_is_read_by_mode_and_processor() -> None:
    values = read("cpu")
    assert {series[1]: value for series, value in values.items() if series[0] == "casstat_cpu_seconds_total"} == {
        "user": 22869,
        "nice": 120,
        "system": 6660,
        "idle": 543948,
        "iowait": 484,
        "irq": 7,
        "softirq": 263,
        "steal": 32,
    }
    assert values["node_cpu_seconds_total", "1", "softirq"] == 162
    assert len([series for series in values if series[0].endswith("cpu_seconds_total")]) == 3 * 8


def test_runnable_tasks_are_counted() -> None:
    assert read("cpu")["node_procs_running",] == 2


def test_disk_counters_are_read_as_integers() -> None:
    values = read("disk", Host(captures.HOST, disks=("vda",)))
    assert values == {
        (f"node_disk_{name}", "vda"): value
        for name, value in {
            "reads_completed_total": 51234,
            "reads_merged_total": 812,
            "read_bytes_total": 4123456,
            "read_time_seconds_total": 20311,
            "writes_completed_total": 91235,
            "writes_merged_total": 40412,
            "written_bytes_total": 9876544,
            "write_time_seconds_total": 81234,
            "io_now": 3,
            "io_time_seconds_total": 60123,
            "io_time_weighted_seconds_total": 101545,
        }.items()
    }


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [((), {"vda", "vda1", "md0"}), (("vda1", "md0"), {"vda1+md0"}), (("loop0",), {"loop0"}), (("sda",), set())],
)
def test_without_a_selection_all_used_disks_are_read(wanted: tuple[str, ...], expected: set[str]) -> None:
    assert {series[1] for series in read("disk", Host(captures.HOST, disks=wanted))} == expected


def test_disk_metrics_scale_sectors_and_milliseconds() -> None:
    scales = {metric.name: metric.scale for metric in PARTS["disk"].metrics}
    assert scales["node_disk_read_bytes_total"] == scales["node_disk_written_bytes_total"] == 512
    assert scales["node_disk_read_time_seconds_total"] == scales["node_disk_io_time_seconds_total"] == 0.001


DISKSTATS = "   8 {number} {name} {reads} 0 {sectors} 30 {writes} 0 {sectors} 40 {now} {busy} 90\n"


def test_the_disks_of_several_data_directories_are_one_device(tmp_path: Path) -> None:
    def diskstats(*disks: tuple[str, int]) -> str:
        lines = (
            DISKSTATS.format(number=16 * n, name=name, reads=10, writes=20, sectors=8, now=n, busy=busy)
            for n, (name, busy) in enumerate(disks)
        )
        return "".join(lines)

    files = {"proc/diskstats": diskstats(("sda", 500), ("sdb", 100), ("sdc", 9))}
    host = replace(tree(tmp_path, files), disks=("sda", "sdb"))
    source = HostSource(PARTS["disk"], lambda: host, FakeClock())
    first = source.read(1.0).values
    assert {series[1] for series in first} == {"sda+sdb"}
    assert first["node_disk_reads_completed_total", "sda+sdb"] == 20
    assert first["node_disk_written_bytes_total", "sda+sdb"] == 16
    assert first["node_disk_io_now", "sda+sdb"] == 1
    busy = []
    for disks in ((("sda", 600), ("sdb", 1000)), (("sda", 900), ("sdb", 1010)), (("sda", 900), ("sdb", 1010))):
        (tmp_path / "proc/diskstats").write_text(diskstats(*disks))
        busy.append(source.read(1.0).values["node_disk_io_time_seconds_total", "sda+sdb"])
    # In each interval, that of the busiest disk: 900, 300 and 0 ms.
    assert busy == [900, 1200, 1200]
    (tmp_path / "proc/diskstats").write_text(diskstats(("sda", 950)))
    assert source.read(1.0).values == {}


def test_the_shorter_lines_of_old_kernels_are_read() -> None:
    values = read("disk", Host(captures.HOST, disks=("md0",)))
    assert values["node_disk_reads_completed_total", "md0"] == 400
    assert values["node_disk_written_bytes_total", "md0"] == 4000


def test_an_interface_name_may_be_followed_directly_by_a_number() -> None:
    assert read("network", Host(captures.HOST, interfaces=("eth0",))) == {
        ("node_network_receive_bytes_total", "eth0"): 123456789012,
        ("node_network_receive_packets_total", "eth0"): 91234567,
        ("node_network_receive_errs_total", "eth0"): 3,
        ("node_network_receive_drop_total", "eth0"): 14,
        ("node_network_transmit_bytes_total", "eth0"): 987654321098,
        ("node_network_transmit_packets_total", "eth0"): 81234567,
        ("node_network_transmit_errs_total", "eth0"): 1,
        ("node_network_transmit_drop_total", "eth0"): 2,
        ("node_netstat_Tcp_RetransSegs",): 17,
    }


def test_without_a_selection_all_interfaces_are_read() -> None:
    devices = {series[1] for series in read("network") if len(series) > 1}
    assert devices == {"lo", "eth0", "veth0@if7"}


def test_a_container_has_its_own_network() -> None:
    container = Host(captures.HOST, CASSANDRA, separate_network=True)
    values = read("network", container)
    assert values["node_network_receive_bytes_total", "eth0"] == 5000
    assert values[("node_netstat_Tcp_RetransSegs",)] == 99
    assert PARTS["network"].origin(container) != PARTS["network"].origin(NODE)


def test_memory_is_read_in_kib() -> None:
    assert read("memory") == {
        (f"node_memory_{field}_bytes",): value
        for field, value in {
            "MemTotal": 24684092,
            "MemFree": 10123456,
            "MemAvailable": 20345678,
            "Buffers": 123456,
            "Cached": 8765432,
            "Dirty": 1234,
            "Writeback": 56,
            "SwapTotal": 4194300,
            "SwapFree": 4190000,
        }.items()
    }
    assert {metric.scale for metric in PARTS["memory"].metrics} == {1024}


def test_pressure_is_read_in_microseconds() -> None:
    assert read("pressure") == {
        ("node_pressure_cpu_waiting_seconds_total",): 107666847,
        ("node_pressure_memory_waiting_seconds_total",): 1200,
        ("node_pressure_memory_stalled_seconds_total",): 900,
        ("node_pressure_io_waiting_seconds_total",): 5312466,
        ("node_pressure_io_stalled_seconds_total",): 3893725,
    }


def test_without_pressure_files_pressure_is_absent(tmp_path: Path) -> None:
    assert read("pressure", tree(tmp_path, {})) == {}


def test_a_process_with_any_command_name_is_read() -> None:
    assert "(java (C) :) 1 2)" in read_text(captures.HOST / f"proc/{CASSANDRA}/stat")
    assert read("process") == {
        ("casstat_process_minor_faults_total",): 912345,
        ("casstat_process_major_faults_total",): 321,
        ("casstat_process_user_seconds_total",): 51234,
        ("casstat_process_system_seconds_total",): 8123,
        ("casstat_process_threads",): 118,
        ("casstat_process_resident_bytes",): 262144,
        ("casstat_process_open_files",): 4,
        ("casstat_process_allowed_cpus",): "0-3,8",
    }
    scales = {metric.name: metric.scale for metric in PARTS["process"].metrics}
    assert scales["casstat_process_resident_bytes"] == PAGE_BYTES


@pytest.mark.parametrize("pid", [None, 99999])
@pytest.mark.parametrize("name", ["process", "cgroup"])
def test_without_a_process_its_metrics_are_absent(name: str, pid: int | None) -> None:
    assert read(name, Host(captures.HOST, pid)) == {}


@pytest.mark.parametrize("name", ["process", "cgroup"])
def test_a_different_process_has_a_different_origin(name: str) -> None:
    assert PARTS[name].origin(NODE) != PARTS[name].origin(Host(captures.HOST, OTHER))


def test_a_version_2_control_group_is_read() -> None:
    assert read("cgroup") == {
        ("casstat_cgroup_memory_limit_bytes",): 8589934592,
        ("casstat_cgroup_memory_bytes",): 6442450944,
        ("casstat_cgroup_cpu_limit",): 1.5,
        ("casstat_cgroup_cpu_throttled_seconds_total",): 3456789000,
    }


def test_a_version_1_control_group_is_read() -> None:
    assert read("cgroup", Host(captures.HOST, OTHER)) == {
        ("casstat_cgroup_memory_limit_bytes",): 2147483648,
        ("casstat_cgroup_memory_bytes",): 1073741824,
        ("casstat_cgroup_cpu_limit",): 2.0,
        ("casstat_cgroup_cpu_throttled_seconds_total",): 9876543210,
    }


V2 = "sys/fs/cgroup/"
V1 = {"memory": "sys/fs/cgroup/memory/c/", "cpu": "sys/fs/cgroup/cpu/c/"}
PROCESSES = "cgroup.procs"
PROCESS_ROOT = f"proc/{CASSANDRA}/root/"
MEMBER = f"1\n{CASSANDRA}\n"


def test_a_version_2_control_group_without_a_limit_is_read(tmp_path: Path) -> None:
    files = {V2 + "memory.max": "max\n", V2 + "memory.current": "5\n", V2 + "cpu.max": "max 100000\n"}
    files[V2 + PROCESSES] = MEMBER
    host = tree(tmp_path, {f"proc/{CASSANDRA}/cgroup": "0::/\n", **files})
    assert read("cgroup", host) == {("casstat_cgroup_memory_bytes",): 5}


def test_a_version_1_control_group_without_a_limit_is_read(tmp_path: Path) -> None:
    files = {
        V1["memory"] + "memory.limit_in_bytes": "9223372036854771712\n",
        V1["cpu"] + "cpu.cfs_quota_us": "-1\n",
        V1["cpu"] + "cpu.cfs_period_us": "100000\n",
        **{folder + PROCESSES: MEMBER for folder in V1.values()},
    }
    host = tree(tmp_path, {f"proc/{CASSANDRA}/cgroup": "3:cpu,cpuacct:/c\n2:memory:/c\n", **files})
    assert read("cgroup", host) == {}


def test_inside_a_container_the_mounted_control_group_is_read(tmp_path: Path) -> None:
    files = {V2 + "memory.max": "1000\n", f"proc/{CASSANDRA}/cgroup": "0::/docker/0123456789ab\n"}
    files[V2 + PROCESSES] = MEMBER
    assert read("cgroup", tree(tmp_path, files)) == {("casstat_cgroup_memory_limit_bytes",): 1000}


@pytest.mark.parametrize("path", ["/", "/../cri-containerd-0123.scope", "/kubepods/pod1/0123"])
def test_in_a_sidecar_cassandras_control_group_is_read(tmp_path: Path, path: str) -> None:
    # These files belong to the agent's own control group and must not be read.
    agents = {V2 + "memory.max": "1000\n", V2 + PROCESSES: "7\n8\n", f"proc/{CASSANDRA}/cgroup": f"0::{path}\n"}
    assert read("cgroup", tree(tmp_path / "hidden", agents)) == {}
    cassandras = {PROCESS_ROOT + V2 + "memory.max": "2000\n", PROCESS_ROOT + V2 + PROCESSES: MEMBER}
    host = tree(tmp_path / "visible", {**agents, **cassandras})
    assert read("cgroup", host) == {("casstat_cgroup_memory_limit_bytes",): 2000}


def test_in_a_sidecar_cassandras_version_1_control_group_is_read(tmp_path: Path) -> None:
    mount, limit = V2 + "memory/", "memory.limit_in_bytes"
    files = {mount + limit: "1000\n", mount + PROCESSES: "7\n", f"proc/{CASSANDRA}/cgroup": "4:memory:/docker/0123\n"}
    assert read("cgroup", tree(tmp_path / "hidden", files)) == {}
    files |= {PROCESS_ROOT + mount + limit: "2000\n", PROCESS_ROOT + mount + PROCESSES: MEMBER}
    assert read("cgroup", tree(tmp_path / "visible", files)) == {("casstat_cgroup_memory_limit_bytes",): 2000}


def test_without_control_group_files_their_metrics_are_absent(tmp_path: Path) -> None:
    assert read("cgroup", tree(tmp_path, {f"proc/{CASSANDRA}/cgroup": "0::/\n"})) == {}


def test_each_file_system_is_read_once() -> None:
    folders = (captures.FOLDER, captures.FOLDER / "5.0.6", captures.FOLDER / "nosuch")
    values = read("filesystem", Host(directories=folders))
    assert len({series[1] for series in values}) == 1
    by_name = {series[0]: value for series, value in values.items()}
    size, free, available = (by_name[f"node_filesystem_{name}_bytes"] for name in ("size", "free", "avail"))
    assert isinstance(size, int)
    assert isinstance(free, int)
    assert isinstance(available, int)
    assert 0 <= available <= free <= size
    assert size > 0


def test_slow_metrics_are_read_once_a_minute() -> None:
    clock = FakeClock()
    source = HostSource(PARTS["filesystem"], lambda: Host(directories=(captures.FOLDER,)), clock)
    has_values = []
    for _ in range(150):
        has_values.append(bool(source.read(1.0).values))
        clock.busy(1.0)
    assert [second for second, is_read in enumerate(has_values) if is_read] == [0, 60, 120]


def test_at_a_one_minute_interval_slow_metrics_are_read_on_every_tick_despite_jitter() -> None:
    clock = FakeClock()
    source = HostSource(PARTS["filesystem"], lambda: Host(directories=(captures.FOLDER,)), clock)
    for late_s in (0.003, 0.001, 0.002, 0.0):
        clock.busy(late_s)
        assert source.read(1.0).values
        clock.busy(60.0 - late_s)


def test_this_machine_is_not_read_for_a_remote_node() -> None:
    for part in HOST:
        scrape = HostSource(part, lambda: None, FakeClock()).read(1.0)
        assert scrape == Scrape(part.name, FakeClock().monotonic_s())


OPTIONAL = ("filesystem", "pressure", "process", "cgroup", "timekeeping", "machine")


@pytest.mark.parametrize("name", [name for name in PARTS if name not in OPTIONAL])
def test_a_missing_file_is_reported_by_name(tmp_path: Path, name: str) -> None:
    source = HostSource(PARTS[name], lambda: tree(tmp_path, {}), FakeClock())
    with pytest.raises(SourceError, match=str(tmp_path)):
        source.read(1.0)


def test_reading_a_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=str(tmp_path)):
        read_text(tmp_path)


def test_the_size_of_a_read_is_bounded(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.write_bytes(b"x" * (MAX_FILE_BYTES + (1 << 18)))
    assert len(read_text(endless)) < MAX_FILE_BYTES + (1 << 17)


def test_every_subject_reads_only_its_own_metrics() -> None:
    for name, part in PARTS.items():
        metrics = {metric.name: metric for metric in part.metrics}
        host = Host(captures.HOST, CASSANDRA, directories=(captures.FOLDER,))
        values = read(name, host)
        # The clock is not read if the host is a captured file tree.
        assert values or name in ("timekeeping", "machine"), name
        for series, value in values.items():
            metric = metrics[series[0]]
            assert len(series) == 1 + len(metric.labels)
            assert isinstance(value, str if metric.kind == Kind.TEXT else int | float)


def test_the_machine_is_described_by_what_the_kernel_knows(tmp_path: Path) -> None:
    devices = "sys/devices/pci"
    host = tree(
        tmp_path,
        {
            "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU: 2 GHz\n\nprocessor\t: 1\nmodel name\t: Other\n",
            "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
            "sys/devices/system/cpu/online": "0-3,8\n",
            f"{devices}/block/sda/device/model": "DISK A   \n",
            f"{devices}/block/sda/sda1/partition": "1\n",
            f"{devices}/block/sdb/device/model": "DISK B\n",
            f"{devices}/block/vda/size": "1\n",
            "sys/class/block/x": "",
        },
    )
    names = {"sda1": "sda/sda1", "sdb": "sdb", "vda": "vda"}
    for name, path in names.items():
        (tmp_path / "sys/class/block" / name).symlink_to(tmp_path / devices / "block" / path)
    for disk in ("sda1", "sdb"):
        (tmp_path / "sys/class/block/md0/slaves").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/class/block/md0/slaves" / disk).symlink_to(tmp_path / devices / "block" / names[disk])
    assert read("machine", host) == {
        ("casstat_machine_processors",): "5 x Some CPU: 2 GHz",
        ("casstat_machine_kernel",): "6.1.0-18-amd64",
    }
    for disks, text in {("md0",): "DISK A, DISK B", ("sda1",): "DISK A"}.items():
        assert read("machine", replace(host, disks=disks))["casstat_machine_disks",] == text
    assert ("casstat_machine_disks",) not in read("machine", replace(host, disks=("vda", "missing")))
    assert read("machine", tree(tmp_path / "other", {})) == {}


def test_the_clock_is_not_read_for_a_captured_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        timekeeping, "clock_state", lambda: ClockState(synchronised=True, max_error_s=0.25, estimated_error_s=0.001)
    )
    assert read("timekeeping") == {}
    assert read("timekeeping", Host()) == {("casstat_clock_synchronised",): 1, ("casstat_clock_error_seconds",): 0.25}


def test_a_clock_that_is_not_synchronised_has_no_maximum_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        timekeeping, "clock_state", lambda: ClockState(synchronised=False, max_error_s=16.0, estimated_error_s=16.0)
    )
    assert read("timekeeping", Host()) == {("casstat_clock_synchronised",): 0}


@pytest.mark.parametrize("error", [PermissionError(1, "Operation not permitted"), AttributeError("adjtimex")])
def test_without_adjtimex_the_clock_metrics_are_absent(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse() -> ClockState:
        raise error

    monkeypatch.setattr(timekeeping, "clock_state", refuse)
    assert read("timekeeping", Host()) == {}
