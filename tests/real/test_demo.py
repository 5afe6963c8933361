"""`casstat demo` from start to removal, and its error messages."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.real.nodes import light
from tests.real.programs import casstat, increase
from tests.waiting import eventually

FIRST_ADDRESS = "127.0.170.1"


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "cli", "demo", *arguments, "--dir", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "demo"
    run(tmp_path / "demo", "down")


def test_nodes_are_measured_under_load_and_leave_nothing_behind(folder: Path) -> None:
    with light():
        up = run(folder, "up", "--nodes", "2", "--load", "200", "--address", FIRST_ADDRESS, "--heap", "400M")
    assert up.returncode == 0, up.stderr
    *lines, load, stop = up.stdout.splitlines()
    assert load == "load  200 operations/s"
    assert stop == f"stop with: casstat demo down --dir {folder}"
    addresses = [line.split()[0] for line in lines[::2]]
    assert addresses == ["127.0.170.1", "127.0.170.2"]
    for below in lines[1::2]:
        _, nodetool, _, log = below.split()
        assert Path(nodetool).is_file()
        assert Path(log).is_file()
    pids = [int((folder / name / "pid").read_text().split()[0]) for name in ("node1", "node2")]
    assert all(psutil.pid_exists(pid) for pid in pids)
    eventually(lambda: '"reads"' in run(folder, "status").stdout, 180)
    status = run(folder, "status")
    assert status.returncode == 0
    assert [line.split()[0] for line in status.stdout.splitlines()] == ["node1", "node2", "load"]
    with casstat("1", "--wide", "--jolokia", f"http://{addresses[1]}:8778/jolokia") as line:
        line.wait_for(lambda rows: increase(rows, "reads_per_s") > 50)
    assert line.rows[-1]["node"] == addresses[1]
    down = run(folder, "down")
    assert down.stdout.split() == ["stopped", "node1,", "node2,", "load"]
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)
    assert not folder.exists()
    assert run(folder, "status").returncode == 1


def test_a_port_in_use_is_an_error_and_no_process_is_left(folder: Path) -> None:
    import socket

    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((FIRST_ADDRESS, 9042))
        bound.listen()
        up = run(folder, "up", "--address", FIRST_ADDRESS)
    assert up.returncode == 1
    assert up.stderr.splitlines()[-1].startswith(f"casstat: {FIRST_ADDRESS}:9042: Address already in use")
    assert "Traceback" not in up.stderr
    assert run(folder, "down").stdout.strip() == "no process was running"


def test_an_unknown_version_is_an_error(folder: Path) -> None:
    up = run(folder, "up", "--version", "5.0.999", "--address", FIRST_ADDRESS)
    assert up.returncode == 1
    assert "Cassandra 5.0.999 (about 70 MB, first time only): Maven failed: " in up.stderr
    assert "Traceback" not in up.stderr


def test_a_missing_java_or_maven_has_a_hint(folder: Path, tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "cli", "demo", "up", "--dir", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60, check=False)
    assert result.returncode == 1
    assert "install" in result.stderr
    assert "Traceback" not in result.stderr


def test_only_loopback_addresses_are_accepted(folder: Path) -> None:
    result = run(folder, "up", "--address", "192.0.2.1")
    assert result.returncode == 2
    assert "is not an IPv4 loopback address" in result.stderr


def test_load_counts_are_written_as_json(tmp_path: Path) -> None:
    from cli.setup.demo.load_generator import Counts, write_counts

    write_counts(tmp_path / "counts", Counts(reads=1, writes=2, errors=3))
    assert json.loads((tmp_path / "counts").read_text()) == {"reads": 1, "writes": 2, "errors": 3}
