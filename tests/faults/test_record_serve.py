"""`casstat record --serve` serves what the load generator writes while it runs."""

import socket
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.main import main
from cli.record.load_server import LoadServer
from collector.redaction.redactor import Redactor
from tests.exporters.metrics_page.parsed import Parsed, parsed
from tests.faults.recorders import recorded
from tests.faults.recording_agent import Node
from tests.waiting import eventually

# Writes a JTL, and continues when the page has its first rows.
WRITING = """
import pathlib, sys, time, urllib.request
result, port, page = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
now_ms = int(time.time() * 1000)
with result.open("w") as file:
    print("timeStamp,elapsed,label,responseCode,success", file=file)
    print(f"{now_ms},12,read,200,true", file=file)
    print(f"{now_ms},30,read,500,false", file=file)
    file.write(f"{now_ms},1")
    file.flush()
    ends_s = time.monotonic() + 60
    while time.monotonic() < ends_s:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        if "casstat_load_operations_total{" in text:
            page.write_text(text)
            break
        time.sleep(0.05)
    print("5,read,200,true", file=file)
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def page_at(port: int) -> Parsed:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        return parsed(response.read().decode())


@pytest.mark.usefixtures("without_summary")
def test_the_page_has_what_the_command_has_written_so_far(
    node: Node, tmp_path: Path, port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    result, page, folder = tmp_path / "load.jtl", tmp_path / "page", tmp_path / "run"
    words: list[str | Path] = [
        "--client",
        result,
        "--serve",
        str(port),
        "-o",
        folder,
        "--",
        sys.executable,
        "-c",
        WRITING,
    ]
    code, _, errors = recorded(capfd, node.address, *words, result, str(port), page)
    assert code == 0, errors
    assert f"serving the client's metrics on http://127.0.0.1:{port}/metrics" in errors
    values = parsed(page.read_text())
    labels = {"cluster": "c", "client": str(result), "operation": "Read"}
    assert values.of("casstat_load_operations_total", **labels) == 1
    assert values.of("casstat_load_errors_total", **labels, error="500") == 1
    name = "casstat_load_operation_duration_seconds"
    assert values.of(f"{name}_sum", **labels, latency="service") == pytest.approx(0.012)
    assert values.of(f"{name}_bucket", **labels, latency="service", le="0.01") == 0
    assert values.of(f"{name}_bucket", **labels, latency="service", le="0.02") == 1
    # The import at the end has the last row as well.
    assert '"completed"' in (next((folder / "clients").iterdir())).read_text()


def test_a_port_in_use_is_an_error_before_the_command_starts(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    started = tmp_path / "started"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        code, _, errors = recorded(capfd, node.address, "--serve", port, "-o", tmp_path / "run", "--", "touch", started)
    assert code == 125
    assert errors.splitlines()[-1].startswith(f"casstat: --serve 127.0.0.1:{port}: address already in use")
    assert not started.exists()
    assert not (tmp_path / "run").exists()


def test_remote_client_hosts_and_invalid_addresses_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "127.0.0.1", "--serve", "1", "--client-host", "ssh://h", "--", "true"]) == 125
    assert "--serve reads only files on this machine" in capfd.readouterr().err
    with pytest.raises(CasstatError, match=r"^--serve 'unix:/x': not HOST:PORT"):
        LoadServer("unix:/x", (), Path(), "c", Redactor())


def test_a_result_in_the_output_is_served(tmp_path: Path, port: int) -> None:
    with LoadServer(str(port), (), tmp_path, "c", Redactor()):
        now_ms = int(time.time() * 1000)
        log = tmp_path / "command.log"
        log.write_text(f"timeStamp,elapsed,label,responseCode,success\n{now_ms},5,x,200,true\n")
        labels = {"cluster": "c", "client": "command.log", "operation": "x"}
        eventually(lambda: page_at(port).of("casstat_load_operations_total", **labels) == 1)


def test_notes_have_no_secrets(tmp_path: Path, port: int, capfd: pytest.CaptureFixture[str]) -> None:
    result, errors = tmp_path / "load.jtl", []
    with LoadServer(str(port), (str(result),), tmp_path, "c", Redactor()):
        row = "1700000000000,5,x,200,https://h/?token=SECRET1234567890"
        result.write_text(f"timeStamp,elapsed,label,responseCode,success\n{row}\n")

        def is_noted() -> bool:
            errors.append(capfd.readouterr().err)
            return "malformed lines are skipped" in "".join(errors)

        eventually(is_noted)
    assert "SECRET" not in "".join(errors)
