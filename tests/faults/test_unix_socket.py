"""The API on a UNIX socket: only the current user may connect, and has the permissions of loopback clients."""

import signal
import socket
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

from cli.record.command.output_observers import COLUMNS
from collector.agents.addresses import NodeAddress, Tunnel
from collector.agents.agent_client import AgentClient
from collector.agents.agent_connection import AgentError
from collector.http.access import Access
from collector.live.live_cluster import Plan
from exporters.api.app import build
from exporters.api.server import Server, check
from exporters.api.sockets import MAX_UNIX_BYTES, ListenError
from exporters.live.frame import LiveFrames, Wanted
from tests.exporters.api.scripted_agent import Scripted, journal
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.program import Program
from tests.waiting import eventually


def address_of(path: Path) -> NodeAddress:
    return NodeAddress("ssh", "db1", 22, tunnel=Tunnel(str(path), "ssh://me@db1", ""))


def serve(folder: Path, path: Path) -> Server:
    return Server(build(Scripted(journal(folder / "journal"))), f"unix:{path}", None, print)


def test_clients_may_read_and_write(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = serve(tmp_path, path)
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(AgentClient(address_of(path), Access())) as client:
        assert client.json("/api/v1/node")["node"] == "10.0.0.1"
        assert client.post("/api/v1/runs", {"name": "load"})["name"] == "load"
        with pytest.raises(AgentError, match=r"^ssh://me@db1: HTTP 404"):
            client.json("/none")
    server.stop()
    assert not path.exists()
    with closing(AgentClient(address_of(path), Access())) as client, pytest.raises(AgentError, match="ssh://me@db1: "):
        client.json("/api/v1/node")


def test_a_socket_in_use_is_an_error_and_a_stale_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server = serve(tmp_path, path)
    with pytest.raises(ListenError, match="Address already in use"):
        check(f"unix:{path}", None)
    server._socket.close()
    server.stop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
    assert path.is_socket()
    check(f"unix:{path}", None)
    assert not path.exists()


@pytest.mark.parametrize("path", ["", "relative/socket", "/run/" + "a" * MAX_UNIX_BYTES])
def test_an_impossible_path_is_an_error(path: str) -> None:
    with pytest.raises(ListenError, match=r"the path must be absolute and at most 107 bytes long$"):
        check(f"unix:{path}", None)


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("content")
    with pytest.raises(ListenError, match="Address already in use"):
        check(f"unix:{path}", None)
    assert path.read_text() == "content"


def never(_: str) -> NoReturn:
    raise AssertionError


def test_an_agent_serves_a_live_cluster_on_a_socket(fake: FakeJolokia, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    options = ("--jolokia", fake.url, "--source", "jolokia", "--journal-dir", str(tmp_path / "journal"))
    with Program("agent", *options, "--listen", f"unix:{path}") as program:
        eventually(path.is_socket)
        plan = Plan((address_of(path),), (), 1.0, lambda _: Access(), None, never)
        frames = LiveFrames(plan, Wanted(COLUMNS))
        frames.start()
        eventually(lambda: any(frame.counted for frame in frames.history.frames))
        frames.stop()
        code, errors = program.end(signal.SIGTERM)
    assert code == 0
    assert f"serving unix:{path}\n" in errors
    assert not path.exists()
