"""`casstat fetch` downloads over connections that break or are slow, within time and size limits."""

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from collector.agents import agent_client
from collector.agents.addresses import parse_address
from collector.agents.agent_client import AgentClient
from collector.agents.fetching import FetchRange, fetched
from collector.http.access import Access
from collector.recording.header import FULL_EVERY
from tests.faults.fake_agent_server import (
    FILE_PATH,
    SIZE_BYTES,
    FakeAgentServer,
    Responses,
    responses,
    responses_with_file,
    send,
    send_one_byte,
)
from tests.faults.fetched_nodes import RecordedNode, fetch, serving_history, ticks_of
from tests.faults.recording_agent import HOST

CUT_BYTES = 4000


class CuttingForwarder:
    """Forwards connections to a port of HOST, and closes each of them after CUT_BYTES of the responses.

    connections  the number of connections so far.
    """

    def __init__(self, target: int) -> None:
        self.connections = 0
        self._target = target
        self._listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with client, socket.create_connection((HOST, self._target)) as upstream:
                _forward(client, upstream)


def _forward(client: socket.socket, upstream: socket.socket) -> None:
    remaining = CUT_BYTES
    requests = threading.Thread(target=_copy, args=(client, upstream), daemon=True)
    requests.start()
    with contextlib.suppress(OSError):
        while remaining > 0 and (data := upstream.recv(remaining)):
            client.sendall(data)
            remaining -= len(data)
        client.shutdown(socket.SHUT_RDWR)
        upstream.shutdown(socket.SHUT_RDWR)
    requests.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_a_download_continues_after_broken_connections(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)
    monkeypatch.setattr(agent_client, "MIN_PROGRESS_BYTES", 1)
    port = int(recorded_node.address.rpartition(":")[2])
    with closing(CuttingForwarder(port)) as forwarder:
        code, _, errors = fetch(capsys, forwarder.address, *recorded_node.whole_period, "-o", tmp_path / "run")
    assert (code, errors) == (0, "")
    assert forwarder.connections > recorded_node.file.stat().st_size / CUT_BYTES
    assert ticks_of(tmp_path / "run") == ticks_of(recorded_node.journal)


def dribble(handler: BaseHTTPRequestHandler) -> None:
    """Send a very long body, one byte at a time."""
    send(handler, b"", 1 << 30)
    with contextlib.suppress(OSError):
        while not threading.Event().wait(0.02):
            handler.wfile.write(b" ")


@pytest.mark.parametrize(
    ("agent", "limits", "message"),
    [
        ({"node": dribble}, {"TIMEOUT_S": 0.2}, "no complete response in time"),
        (responses_with_file(dribble), {"MAX_START_S": 0.2, "RETRY_DELAY_S": 0.0}, "download too slow"),
        (
            responses_with_file(bytes(SIZE_BYTES + 101)),
            {"MAX_GROWTH_BYTES": 100},
            "the file is larger than its listed size",
        ),
    ],
    ids=["a slow JSON response", "a slow download", "a large file"],
)
def test_responses_are_limited_in_time_and_size(
    agent: Responses,
    limits: Mapping[str, float],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(agent_client, name, value)
    with closing(FakeAgentServer(agent)) as server:
        code, _, errors = fetch(capsys, server.address, "--last", "1h", "-o", tmp_path / "run")
    assert code == 1
    assert message in errors


def test_attempts_with_little_progress_are_limited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)
    with closing(FakeAgentServer(responses_with_file(send_one_byte))) as server:
        code, _, errors = fetch(capsys, server.address, "--last", "1h", "-o", tmp_path / "run")
        assert server.paths.count(FILE_PATH) == agent_client.MAX_ATTEMPTS
    assert code == 1
    assert "response truncated" in errors


def test_all_requests_to_an_agent_use_one_connection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(FakeAgentServer(responses())) as server:
        fetch(capsys, server.address, "--last", "1h", "-o", tmp_path / "run")
        assert server.paths.count("time") == 8
        assert server.connections == 1


def test_only_the_frames_of_the_period_are_downloaded(tmp_path: Path) -> None:
    begin_s = float(int(time.time()) - 20 * FULL_EVERY)
    with serving_history(tmp_path / "node", "n1", 20 * FULL_EVERY, begin_s) as node:
        client = AgentClient(parse_address(node.address, "http"), Access())
        downloaded: list[int] = []
        wanted = FetchRange(begin_s + 5 * FULL_EVERY, begin_s + 5 * FULL_EVERY + 10)
        (result,) = fetched([client], wanted, tmp_path / "run", downloaded.append).nodes
        assert (result.ticks, result.problem) == (11, "")
        assert sum(downloaded) < node.file.stat().st_size * 0.3


def test_connections_of_nodes_with_a_problem_are_closed(tmp_path: Path) -> None:
    with closing(FakeAgentServer({"node": b"[1]"})) as server:
        client = AgentClient(parse_address(server.address, "http"), Access())
        (node,) = fetched([client], FetchRange(0, 1), tmp_path / "run").nodes
    assert "does not describe a node" in node.problem
    assert not client._connection.is_open
