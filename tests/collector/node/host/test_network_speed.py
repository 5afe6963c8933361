"""The speed of an interface is read only if it is known and limits the interface."""

from pathlib import Path

import pytest

from collector.node.host.kernel_files import Host
from collector.node.host.network import SPEED, read

PID = 4242
SERIES = (SPEED.name, "eth0")


def machine(root: Path, folder: str = "proc/self/net", *, separate_network: bool = False) -> Host:
    """Return a simulated machine with an interface that has no files in /sys yet."""
    (root / folder).mkdir(parents=True)
    (root / folder / "dev").write_text("Inter-|\n face |\n  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n")
    (root / folder / "snmp").touch()
    return Host(root, PID, separate_network=separate_network)


def add_interface(sys_dir: Path, speed: str, link: str = "device") -> Path:
    """Write an interface's files; `link` is its device or the interface on which it is built. Return their folder."""
    folder = sys_dir / "class/net/eth0"
    folder.mkdir(parents=True)
    (folder / "speed").write_text(speed)
    if link:
        (folder / link).touch()
    return folder


@pytest.mark.parametrize("link", ["device", "lower_eth1"])
def test_the_speed_is_read_in_mbit_per_second(tmp_path: Path, link: str) -> None:
    host = machine(tmp_path)
    add_interface(tmp_path / "sys", "10000\n", link)
    assert read(host)[SERIES] == 10000
    assert SPEED.scale * 10000 == 1.25e9


@pytest.mark.parametrize("speed", ["-1\n", "0\n", "", "fast\n"])
def test_an_unknown_speed_is_absent(tmp_path: Path, speed: str) -> None:
    host = machine(tmp_path)
    add_interface(tmp_path / "sys", speed)
    values = read(host)
    assert values["node_network_receive_bytes_total", "eth0"] == 1
    assert SERIES not in values


def test_a_speed_that_cannot_be_read_is_absent(tmp_path: Path) -> None:
    host = machine(tmp_path)
    folder = add_interface(tmp_path / "sys", "1000\n")
    (folder / "speed").unlink()
    assert SERIES not in read(host)
    # Reading a directory is an error, as is reading the speed of an interface that is down.
    (folder / "speed").mkdir()
    assert SERIES not in read(host)


def test_the_nominal_speed_of_a_virtual_interface_is_absent(tmp_path: Path) -> None:
    host = machine(tmp_path)
    add_interface(tmp_path / "sys", "10000\n", link="")
    assert SERIES not in read(host)


def test_the_speed_in_a_container_is_that_of_its_own_interface(tmp_path: Path) -> None:
    host = machine(tmp_path, f"proc/{PID}/net", separate_network=True)
    add_interface(tmp_path / "sys", "1000\n")
    assert SERIES not in read(host)
    add_interface(tmp_path / f"proc/{PID}/root/sys", "25000\n")
    assert read(host)[SERIES] == 25000


def test_an_interface_that_cannot_be_examined_has_no_speed(tmp_path: Path) -> None:
    """For a process in another user namespace, even looking into its /proc/PID/root fails."""
    host = machine(tmp_path)
    (tmp_path / "sys/class/net").mkdir(parents=True)
    # A name that is too long is an error other than a missing file, even for root.
    name = "x" * 300
    dev = tmp_path / "proc/self/net/dev"
    dev.write_text(dev.read_text().replace("eth0", name))
    values = read(host)
    assert values["node_network_receive_bytes_total", name] == 1
    assert (SPEED.name, name) not in values
