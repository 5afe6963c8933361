"""The host columns match iostat and sar over the same interval.

The kernel's files are captured twice, a few busy seconds apart. casstat's sources read both captures. sysstat's
programs also read both: in a separate mount namespace, the first capture is mounted over /proc and /sys/block, and
the second one replaces it between the two reads. Both take the time between them from the captured uptime, so neither
depends on when it runs.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.model.rates import Readings, rates, update_readings
from collector.model.snapshot import Sample, Scrape, Snapshot, Tick
from collector.node.catalogue import CATALOGUE, HOST
from collector.node.host.discovery import disk_of, interface_of
from collector.node.host.disk import parse as parse_disks
from collector.node.host.kernel_files import Host
from exporters.rows.columns import Column, cpu_columns, disk_columns, network_columns
from tests.real.programs import PATIENCE_S

FILES = ("stat", "diskstats", "uptime", "net/dev", "net/snmp", "meminfo", "loadavg", "vmstat", "mounts", "devices")
# How long the disk and the network are busy, and how many writes and packets there are at least.
INTERVAL_S, OPERATIONS = 2.0, 20

# If the file system is not on a disk, as with an overlay, use any disk with activity.
DISK = disk_of(Path.cwd(), Path("/proc/self")) or next(iter(parse_disks(Path("/proc/diskstats").read_text(), ())))[1]
INTERFACE = interface_of("127.0.0.1", Path("/proc/self/net"))


def capture(root: Path) -> float:
    """Copy the kernel's files to `root`, and return the machine's uptime at that moment, in seconds."""
    folder = root / "proc"
    for name in FILES:
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(Path("/proc", name).read_bytes())
    (folder / "self").mkdir(exist_ok=True)
    shutil.copytree(folder / "net", folder / "self" / "net", dirs_exist_ok=True)
    # iostat prefers /sys/block/DISK/stat, which has the disk's statistics without its device numbers or name.
    disk = next(line.split()[3:] for line in (folder / "diskstats").read_text().splitlines() if line.split()[2] == DISK)
    (root / "block" / DISK).mkdir(parents=True)
    (root / "block" / DISK / "stat").write_text(" ".join(disk) + "\n")
    return float((folder / "uptime").read_text().split()[0])


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, float]:
    """Return two captures and the seconds between them, during which the disk and the network are busy."""
    folder = tmp_path_factory.mktemp("captures")
    work = Path.cwd() / f".sysstat-test-{os.getpid()}"
    stop = threading.Event()
    busy = [
        threading.Thread(target=write_and_sync, args=(work, stop)),
        threading.Thread(target=send_to_self, args=(stop,)),
    ]
    first_s = capture(folder / "first")
    for thread in busy:
        thread.start()
    stop.wait(INTERVAL_S)
    stop.set()
    for thread in busy:
        thread.join()
    work.unlink(missing_ok=True)
    second_s = capture(folder / "second")
    return folder / "first", folder / "second", second_s - first_s


def write_and_sync(path: Path, stop: threading.Event) -> None:
    with path.open("wb", buffering=0) as file:
        done = 0
        while not stop.is_set() or done < OPERATIONS:
            done += 1
            file.seek(0)
            file.write(os.urandom(1 << 18))
            os.fsync(file.fileno())


def send_to_self(stop: threading.Event) -> None:
    import socket

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        done = 0
        while not stop.is_set() or done < OPERATIONS:
            done += 1
            sender.sendto(bytes(1000), receiver.getsockname())
            receiver.recv(2000)
            time.sleep(0.001)


def of_casstat(captures: tuple[Path, Path, float]) -> Sample:
    """Return the sample that casstat derives from the two captures."""
    before: Readings = {}
    for root, at_s in zip(captures[:2], (0.0, captures[2]), strict=True):
        host = Host(root, disks=(DISK,), interfaces=(INTERFACE,))
        scrapes = tuple(
            Scrape(part.name, at_s, part.read(host)) for part in HOST if part.name in ("cpu", "disk", "network")
        )
        snapshot = Snapshot("here", Tick(at_s), scrapes)
        sample = rates(CATALOGUE, before, snapshot)
        update_readings(before, snapshot)
    return sample


# Runs a program that prints a report, and another one an hour later or when it receives SIGALRM.
IOSTAT = """
import os, shutil, signal, subprocess, sys, threading
second, disk, *command = sys.argv[1:]
running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"})
for line in running.stdout:
    print(line, end="")
    if line.startswith(disk):
        break
shutil.copytree(second + "/proc", "/proc", dirs_exist_ok=True)
shutil.copytree(second + "/block", "/sys/block", dirs_exist_ok=True)
ended = threading.Event()
def wake():
    while not ended.wait(0.05):
        running.send_signal(signal.SIGALRM)
threading.Thread(target=wake, daemon=True).start()
print(running.stdout.read(), end="")
ended.set()
sys.exit(running.wait())
"""
# Adds a record of each capture to a file, and prints the report on the time between them.
SAR = """
import os, shutil, subprocess, sys
second, file, *command = sys.argv[1:]
folders = ("/usr/lib/sysstat", "/usr/lib/sa", "/usr/lib64/sa")
sadc = shutil.which("sadc", path=os.pathsep.join(folders))
subprocess.run([sadc, "1", "1", file], check=True)
shutil.copytree(second + "/proc", "/proc", dirs_exist_ok=True)
subprocess.run([sadc, "1", "1", file], check=True)
sys.exit(subprocess.run([*command, "-f", file], env={**os.environ, "LC_ALL": "C"}).returncode)
"""


def of_sysstat(captures: tuple[Path, Path, float], tmp_path: Path, program: str, arguments: list[str]) -> str:
    """Run IOSTAT or SAR on the first capture, which it replaces with the second one; return its output."""
    first = tmp_path / "seen"
    shutil.copytree(captures[0], first)
    inner = [sys.executable, "-c", program, str(captures[1]), *arguments]
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    over = 'mount --bind "$1/block" /sys/block && mount --bind "$1/proc" /proc && shift && exec "$@"'
    mount = ["sh", "-c", over, "sh", str(first), *inner]
    result = subprocess.run([*namespace, *mount], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def table(text: str, first: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the tables in sysstat's output whose headers contain `first`."""
    header: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if first in words:
            header = words
        elif header and len(words) == len(header):
            yield dict(zip(header, words, strict=True))
        else:
            header = []


def assert_same(columns: dict[Column, str], sample: Sample, factors: dict[str, float] | None = None) -> None:
    """Assert that each column equals sysstat's value to two decimals."""
    for column, text in columns.items():
        value = column.of(sample)
        factor = (factors or {}).get(column.name, 1.0)
        shown = float(value) if isinstance(value, float) else 0.0
        assert shown / factor == pytest.approx(float(text), abs=0.0051), column.name


def test_cpu_and_disk_match_iostat(captures: tuple[Path, Path, float], tmp_path: Path) -> None:
    text = of_sysstat(captures, tmp_path, IOSTAT, [DISK, "iostat", "-x", "-m", "-c", "-d", DISK, "3600", "2"])
    sample = of_casstat(captures)
    cpu = {f"cpu_{word}_pct": f"%{word}" for word in ("user", "nice", "system", "iowait", "steal", "idle")}
    disk = {
        "disk_reads_per_s": "r/s",
        "disk_writes_per_s": "w/s",
        "disk_read_mb_per_s": "rMB/s",
        "disk_write_mb_per_s": "wMB/s",
        "disk_read_await_ms": "r_await",
        "disk_write_await_ms": "w_await",
        "disk_queue": "aqu-sz",
        "disk_util_pct": "%util",
    }
    *_, cpu_row = iostat_cpu(text)
    *_, disk_row = (row for row in table(text, "Device") if row["Device"] == DISK)
    assert_same({column: cpu_row[cpu[column.name]] for column in cpu_columns()}, sample)
    assert_same({column: disk_row[disk[column.name]] for column in disk_columns(DISK)}, sample)
    assert float(disk_row["w/s"]) > 0


def iostat_cpu(text: str) -> Iterator[dict[str, str]]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("avg-cpu:"):
            yield dict(zip(line.split()[1:], lines[number + 1].split(), strict=True))


def test_network_matches_sar(captures: tuple[Path, Path, float], tmp_path: Path) -> None:
    text = of_sysstat(captures, tmp_path, SAR, [str(tmp_path / "records"), "sar", "-n", "DEV", "--iface=" + INTERFACE])
    sample = of_casstat(captures)
    names = {
        "net_rx_kbit_per_s": "rxkB/s",
        "net_tx_kbit_per_s": "txkB/s",
        "net_rx_packets_per_s": "rxpck/s",
        "net_tx_packets_per_s": "txpck/s",
    }
    # A kB in sar is 1024 bytes, and a kbit in the columns is 1000 bits.
    factors = {"net_rx_kbit_per_s": 8.192, "net_tx_kbit_per_s": 8.192}
    row = next(row for row in table(text, "IFACE") if row["IFACE"] == INTERFACE)
    shown = [column for column in network_columns(INTERFACE) if column.name in names]
    assert_same({column: row[names[column.name]] for column in shown}, sample, factors)
    assert float(row["rxkB/s"]) > 0
