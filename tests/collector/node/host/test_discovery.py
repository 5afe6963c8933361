"""Discovery: facts about a node, its disk and its interface."""

import os
import socket
from pathlib import Path, PosixPath
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from collector.node.host.cassandra_processes import NodeFacts
from collector.node.host.discovery import default_interfaces, disk_of, disks_of, interface_of, is_this_machine
from collector.node.jolokia.mbean_source import read_facts
from tests.collector import captures
from tests.collector.fakes import FakeJolokia
from tests.collector.nodes import RUNTIME, SERVICE


def facts(service: dict[str, Any], runtime: dict[str, Any]) -> NodeFacts:
    return read_facts(FakeJolokia({SERVICE: service, RUNTIME: runtime}), 1.0)


@pytest.mark.parametrize("endpoint", ["10.0.0.2", "/10.0.0.2", "node2.example/10.0.0.2"])
def test_facts_include_address_directories_and_start_time(endpoint: str) -> None:
    service = {
        "LocalHostId": "b",
        "EndpointToHostId": {"/10.0.0.1": "a", endpoint: "b"},
        "AllDataFileLocations": ["/data1", "/data2"],
    }
    node_facts = facts(service, {"Name": "7@host", "StartTime": 1_700_000_000_500})
    peers = ("10.0.0.1", "10.0.0.2")
    assert node_facts == NodeFacts(
        "10.0.0.2", (Path("/data1"), Path("/data2")), "7@host", 1_700_000_000_500, peers=peers
    )


def test_facts_that_a_starting_node_does_not_report_stay_empty() -> None:
    node_facts = facts({"LocalHostId": None, "EndpointToHostId": {}}, {"Name": "7@host", "StartTime": 1000})
    assert node_facts == NodeFacts("", (), "7@host", 1000)
    assert read_facts(FakeJolokia(), 1.0) == NodeFacts()


class PathOnDevice(PosixPath):
    """A path that `stat` reports to be on `device`."""

    device = os.makedev(8, 1)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        del follow_symlinks
        return os.stat_result((0o40755, 2, self.device, 1, 0, 0, 0, 0, 0, 0))


DISKS = {
    "8:0": "pci0/block/sda",
    "259:0": "pci1/block/nvme0n1",
    "253:0": "virtual/block/dm-0",
    "9:0": "virtual/block/md0",
}
PARTITIONS = {"8:1": "pci0/block/sda/sda1", "259:2": "pci1/block/nvme0n1/nvme0n1p2", "9:1": "virtual/block/md0/md0p1"}
# These two device files exist on every Linux system; here they stand in for disks.
DEVICE_FILES = {"/dev/null": (1, 3), "/dev/zero": (1, 5)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root directory of a simulated machine with a few block devices."""
    devices = {**DISKS, **PARTITIONS, "1:3": "pci0/block/sdb", "1:5": "pci0/block/sdb/sdb1"}
    links = tmp_path / "sys/dev/block"
    links.mkdir(parents=True)
    for number, path in devices.items():
        folder = tmp_path / "sys/devices" / path
        folder.mkdir(parents=True, exist_ok=True)
        (links / number).symlink_to(folder)
        if number in PARTITIONS or number == "1:5":
            (folder / "partition").write_text("1\n")
    return tmp_path


def process(root: Path, *mounts: tuple[str, str]) -> Path:
    """Return the `/proc` directory of a process with these mounts, each given as a mount point and a device."""
    folder = root / "proc/7"
    folder.mkdir(parents=True)
    lines = [f"36 35 0:40 / {point} rw,noatime shared:1 - btrfs {source} rw,space_cache\n" for point, source in mounts]
    (folder / "mountinfo").write_text("".join(lines))
    return folder


@pytest.mark.parametrize(
    ("number", "disk"),
    [
        ((8, 0), "sda"),
        ((8, 1), "sda"),
        ((259, 0), "nvme0n1"),
        ((259, 2), "nvme0n1"),
        ((253, 0), "dm-0"),
        ((9, 0), "md0"),
        ((9, 1), "md0"),
        ((8, 77), ""),
    ],
)
def test_the_disk_is_the_whole_disk_with_the_data_directory(root: Path, number: tuple[int, int], disk: str) -> None:
    path = PathOnDevice("/data")
    path.device = os.makedev(*number)
    assert disk_of(path, process(root), root) == disk


@pytest.mark.parametrize(("source", "disk"), [("/dev/null", "sdb"), ("/dev/zero", "sdb")])
def test_a_file_system_with_its_own_device_number_is_found_by_its_mount(root: Path, source: str, disk: str) -> None:
    assert os.stat(source).st_rdev == os.makedev(*DEVICE_FILES[source])  # noqa: PTH116
    path = PathOnDevice("/data/cassandra")
    path.device = os.makedev(0, 40)
    assert disk_of(path, process(root, ("/", "/dev/nosuch"), ("/data", source), ("/database", "none")), root) == disk


@pytest.mark.parametrize("source", ["overlay", "tmpfs", "none", "server:/export", "/dev/nosuch"])
def test_a_directory_without_a_block_device_has_no_disk(root: Path, source: str) -> None:
    path = PathOnDevice("/data")
    path.device = os.makedev(0, 40)
    assert disk_of(path, process(root, ("/", source)), root) == ""


def test_the_innermost_mount_is_used(root: Path) -> None:
    path = PathOnDevice("/data/cassandra/data")
    path.device = os.makedev(0, 40)
    mounts = (("/data/cassandra", "/dev/null"), ("/data", "overlay"), ("/", "overlay"))
    assert disk_of(path, process(root, *mounts), root) == "sdb"


def test_a_later_mount_hides_an_earlier_one(root: Path) -> None:
    path = PathOnDevice("/data")
    path.device = os.makedev(0, 40)
    assert disk_of(path, process(root, ("/data", "overlay"), ("/data", "/dev/null")), root) == "sdb"


def test_a_mount_point_with_a_space_in_its_name_is_found(root: Path) -> None:
    path = PathOnDevice("/my data/cassandra")
    path.device = os.makedev(0, 40)
    assert disk_of(path, process(root, ("/", "overlay"), (r"/my\040data", "/dev/null")), root) == "sdb"


def test_without_the_data_directory_or_the_process_there_is_no_disk(root: Path) -> None:
    assert disk_of(root / "nosuch", root / "proc/8", root) == ""
    path = PathOnDevice("/data")
    path.device = os.makedev(0, 40)
    assert disk_of(path, root / "proc/8", root) == ""


def test_the_data_directory_is_looked_up_in_the_mount_namespace_of_the_process(root: Path) -> None:
    folder = process(root)
    (folder / "root/data").mkdir(parents=True)
    path = PathOnDevice("/data")
    path.device = os.makedev(8, 1)
    # `path` is on sda in this process's mount namespace, but not in that of the examined process.
    assert disk_of(path, folder, root) != "sda"


NET = captures.HOST / "proc/self/net"


def route(folder: Path, *lines: str) -> Path:
    head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT"
    (folder / "route").write_text("\n".join([head, *lines, ""]))
    return folder


def test_the_interface_is_the_one_with_the_nodes_address() -> None:
    loopback = [
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(entry.family is socket.AF_INET and entry.address == "127.0.0.1" for entry in addresses)
    ]
    assert [interface_of("127.0.0.1", NET)] == loopback
    assert [interface_of("127.0.0.2", NET)] == loopback


@pytest.mark.parametrize("address", ["", "no address", "192.0.2.77", "2001:db8::77"])
def test_for_an_unknown_address_the_interface_of_the_default_route_is_used(address: str) -> None:
    assert interface_of(address, NET) == "eth0"


def test_the_label_of_an_address_is_not_a_part_of_the_interfaces_name(monkeypatch: pytest.MonkeyPatch) -> None:
    address = SimpleNamespace(address="192.0.2.7")
    monkeypatch.setattr("psutil.net_if_addrs", lambda: {"lo:vip": [address]})
    assert interface_of("192.0.2.7", NET) == "lo"


def test_an_interface_of_the_machine_alone_is_not_that_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.net_if_addrs", lambda: {"ens5": [SimpleNamespace(address="192.0.2.7")]})
    assert interface_of("192.0.2.7", NET) == "eth0"


def test_without_a_default_route_there_is_no_interface(tmp_path: Path) -> None:
    assert interface_of("", route(tmp_path, "eth1\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0")) == ""
    assert interface_of("", route(tmp_path)) == ""
    assert interface_of("", tmp_path / "nosuch") == ""


def test_the_first_default_route_is_used(tmp_path: Path) -> None:
    lines = [
        f"{name}\t00000000\t010200C0\t0003\t0\t0\t{metric}\t00000000\t0\t0\t0"
        for name, metric in (("eth2", 100), ("wlan0", 600))
    ]
    assert interface_of("", route(tmp_path, *lines)) == "eth2"


DEFAULT_4, DEFAULT_6 = "eth{}\t00000000\t010200C0\t0003\t0\t0\t{}\t00000000\t0\t0\t0", f"{'0' * 32} 00 {'0' * 32} 00 "
# The kernel's own entries: an unreachable default route, a link-local network and a multicast network.
OTHERS_6 = [
    f"{DEFAULT_6}{'0' * 32} ffffffff 00000001 00000000 00200200       lo",
    f"fe80{'0' * 28} 40 {'0' * 32} 00 {'0' * 32} 00000100 00000001 00000000 00000001     eth0",
    f"ff{'0' * 30} 08 {'0' * 32} 00 {'0' * 32} 00000100 00000003 00000000 00000001     eth0",
]


def route_6(folder: Path, *routes: tuple[str, int]) -> Path:
    gateway = "fe80000000000000000000000000000001"
    lines = [f"{DEFAULT_6}{gateway} {metric:08x} 00000001 00000000 00000003 {name:>8}" for name, metric in routes]
    (folder / "ipv6_route").write_text("".join(f"{line}\n" for line in [*OTHERS_6, *lines]))
    return folder


def test_a_default_route_of_ipv6_alone_is_used(tmp_path: Path) -> None:
    assert interface_of("", route_6(tmp_path, ("eth1", 1024))) == "eth1"
    assert interface_of("2001:db8::77", route(tmp_path)) == "eth1"


def test_only_routes_that_lead_somewhere_are_used(tmp_path: Path) -> None:
    assert interface_of("", route_6(tmp_path)) == ""
    # A VPN's route to the lower half of the addresses, and an interface that is down.
    lines = [
        "tun0\t00000000\t00000000\t0003\t0\t0\t0\t00000080\t0\t0\t0",
        DEFAULT_4.format(3, 0).replace("0003", "0002"),
    ]
    assert interface_of("", route(tmp_path, *lines)) == ""


def test_the_route_with_the_lowest_metric_is_used_and_ipv4_before_ipv6(tmp_path: Path) -> None:
    route(tmp_path, DEFAULT_4.format(0, 600), DEFAULT_4.format(1, 100))
    assert default_interfaces(route_6(tmp_path, ("eth2", 20), ("eth3", 10))) == ["eth1", "eth0", "eth3", "eth2"]


def test_several_data_directories_on_one_disk_count_once(root: Path) -> None:
    paths = []
    for minor in ((8, 1), (9, 0), (8, 0), (0, 40)):
        path = PathOnDevice("/data")
        path.device = os.makedev(*minor)
        paths.append(path)
    # PathOnDevice.device is that of each path; the last one is on a tmpfs.
    assert disks_of(paths, process(root), root) == ("sda", "md0")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1"])
def test_a_loopback_address_belongs_to_this_machine(host: str) -> None:
    assert is_this_machine(host)


def test_the_addresses_of_local_interfaces_belong_to_this_machine() -> None:
    entries = [entry for interface in psutil.net_if_addrs().values() for entry in interface]
    addresses = [entry.address for entry in entries if entry.family is socket.AF_INET]
    assert addresses
    assert all(is_this_machine(address) for address in addresses)


@pytest.mark.parametrize("host", ["192.0.2.77", "2001:db8::77"])
def test_a_documentation_address_belongs_to_another_machine(host: str) -> None:
    assert not is_this_machine(host)
