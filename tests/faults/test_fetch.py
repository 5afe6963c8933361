"""`casstat fetch` writes complete recordings of a past period, even over connections that break."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from collector.journal.reader import entries, read
from collector.journal.segments import journal_files
from collector.journal.tick_order import Integrity, TickOrder
from collector.runs import agent_client
from collector.runs.run_file import read_run
from exporters.api.app import build
from exporters.api.server import Server
from tests.collector.cluster.recorded_nodes import busy, record
from tests.collector.fakes import file_size_limit
from tests.exporters.api.scripted_agent import Scripted

HOST = "127.0.63.4"
TICKS = 600


class RecordedAgent(Scripted):
    """An agent with a recorded journal."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.name = name

    def node(self) -> Mapping[str, Any]:
        return {"node": self.name, "interval_s": 1.0, "casstat": "0.1.0"}


@contextmanager
def serving(folder: Path, name: str, begin_s: float) -> Iterator[Server]:
    """Serve the API of an agent that has recorded `TICKS` ticks."""
    record(folder, busy(name, TICKS, begin_s=begin_s))
    server = Server(build(RecordedAgent(folder, name)), f"{HOST}:0", None, print)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def begin_s() -> float:
    return float(int(time.time())) - TICKS


@pytest.fixture
def agent(tmp_path: Path, begin_s: float) -> Iterator[Server]:
    with serving(tmp_path / "journal", "n1", begin_s) as server:
        yield server


def fetch(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["fetch", *arguments])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def ticks_of(run: Path) -> list[float]:
    files = list(journal_files(run))
    order = TickOrder()
    for file in files:
        list(order.filtered(read(file)))
    assert order.integrity() == Integrity()
    return [entry.snapshot.tick.time_s for file in files for entry in entries(read(file))]


def address(server: Server) -> str:
    return f"{HOST}:{server.address[1]}"


def test_the_ticks_of_a_period_are_fetched_from_every_node(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    period = ("--from", str(begin_s + 300), "--until", str(begin_s + 359))
    with serving(tmp_path / "other", "n2", begin_s) as other:
        code, out, errors = fetch(capsys, address(agent), address(other), *period, "-o", str(run), "--name", "night")
    assert (code, errors) == (0, "")
    assert [line.split(",")[0] for line in out.splitlines()] == ["n1: 60 ticks", "n2: 60 ticks", str(run)]
    content = read_run(run)
    assert (content.name, content.begin_s, content.end_s) == ("night", begin_s + 300, begin_s + 359)
    for node in content.nodes:
        assert (node.ticks, node.begin_s, node.end_s) == (60, begin_s + 300, begin_s + 359)
        (clock,) = node.clocks
        assert abs(clock.offset_s) <= clock.error_s < 1
    times_s = ticks_of(run / "nodes" / "n1")
    # Earlier ticks are kept as well, so that the first rates are known.
    assert set(range(300, 360)) <= {time_s - begin_s for time_s in times_s}
    assert max(times_s) == begin_s + 359
    assert sorted(path.name for path in run.iterdir()) == ["nodes", "run.json"]


def test_merge_takes_the_time_range_and_the_clock_offsets_from_the_run(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    fetch(capsys, address(agent), "--from", str(begin_s + 300), "--until", str(begin_s + 359), "-o", str(run))
    text = (run / "run.json").read_text()
    (node,) = read_run(run).nodes
    # As if the node's clock had been half a minute ahead.
    moved = text.replace(f'"offset_s": {node.clocks[0].offset_s}', '"offset_s": 30.0')
    assert moved != text
    (run / "run.json").write_text(moved)
    assert main(["merge", str(run), "-o", str(tmp_path / "merged"), "-i", "1"]) == 0
    lines = (tmp_path / "merged" / "rows.tsv").read_text().splitlines()
    times_s = {float(line.split("\t")[0]) for line in lines[1:]}
    assert min(times_s) == begin_s + 300
    assert max(times_s) == begin_s + 329


class Cutting:
    """Forwards connections to a server, and cuts each one after `limit` bytes of its responses."""

    def __init__(self, target: tuple[str, int], limit: int) -> None:
        self._target, self._limit = target, limit
        self.connections = 0
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
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
            with client, socket.create_connection(self._target) as upstream:
                self._forward(client, upstream)

    def _forward(self, client: socket.socket, upstream: socket.socket) -> None:
        left = self._limit
        thread = threading.Thread(target=_copy, args=(client, upstream), daemon=True)
        thread.start()
        with contextlib.suppress(OSError):
            while left > 0 and (data := upstream.recv(min(left, 1 << 12))):
                client.sendall(data)
                left -= len(data)
            client.shutdown(socket.SHUT_RDWR)
            upstream.shutdown(socket.SHUT_RDWR)
        thread.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def test_a_download_continues_after_broken_connections(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)
    (file,) = journal_files(tmp_path / "journal")
    with closing(Cutting(agent.address, 4000)) as cutting:
        code, _, errors = fetch(capsys, f"{HOST}:{cutting.port}", "--from", str(begin_s), "-o", str(tmp_path / "run"))
    assert (code, errors) == (0, ""), errors
    assert cutting.connections > file.stat().st_size / 4000
    assert ticks_of(tmp_path / "run") == ticks_of(tmp_path / "journal")


def test_a_node_that_is_down_is_reported_and_the_others_are_fetched(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server((HOST, 0)) as unused:
        port = unused.getsockname()[1]
    run = tmp_path / "run"
    code, out, errors = fetch(capsys, address(agent), f"{HOST}:{port}", "--from", str(begin_s), "-o", str(run))
    assert code == 1
    assert out.startswith("n1: 600 ticks")
    assert errors.splitlines() == [
        f"casstat: http://{HOST}:{port}: Connection refused",
        "casstat: 1 of 2 nodes not fetched completely",
    ]
    assert [node.problem for node in read_run(run).nodes] == ["", f"http://{HOST}:{port}: Connection refused"]


def test_a_period_without_ticks_leaves_no_run(
    agent: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    code, out, errors = fetch(capsys, address(agent), "--from", "5", "--until", "6", "-o", str(run))
    assert (code, out) == (1, "")
    assert "no ticks were recorded in this time range" in errors
    assert not run.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "use either --last or --from"),
        (("--last", "1h", "--from", "10:00"), "use either --last or --from"),
        (("--last", "1h", "--until", "10:00"), "--last cannot be combined with --until"),
        (("--from", "100", "--until", "50"), "--until is before --from"),
        (("--last", "soon"), "is not a duration"),
        (("--last", "1h", "http://h:8778/jolokia"), "a Jolokia agent does not record"),
        (("--last", "1h", "me:secret@h"), "must not contain a user name and password"),
        (("--last", "1h", "--agent-password-file", "x"), "--agent-password-file requires --agent-user"),
    ],
)
def test_invalid_options_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, out, errors = fetch(capsys, "h", "-o", str(tmp_path / "run"), *arguments)
    assert (code, out) == (2, "")
    assert message in errors
    assert "secret" not in errors
    assert not (tmp_path / "run").exists()


def test_an_existing_directory_is_not_changed(
    agent: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = fetch(capsys, address(agent), "--last", "1h", "-o", str(tmp_path))
    assert code == 1
    assert f"{tmp_path}: already exists (hint: choose another directory)" in errors


class FakeAgentServer:
    """Responds to each path with given bytes, and to all others with HTTP 404."""

    def __init__(self, bodies: Mapping[str, bytes]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                body = bodies.get(path, b"{}")
                self.send_response(200 if path in bodies else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        class QuietServer(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Print nothing if the client hangs up."""

        self._server = QuietServer((HOST, 0), Handler)
        self.address = f"{HOST}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


NODE = b'{"node": "n1", "casstat": "0.1.0", "interval_s": 1.0}'
TIME = b'{"received_s": 1700000000.0, "sent_s": 1700000000.0}'
GONE = "20231114T221320.jsonl.zst"
WRONG: dict[str, tuple[dict[str, bytes], str]] = {
    "a web server": ({}, "HTTP 404: path not found"),
    "not JSON": ({"node": b"<html>"}, "the response is not JSON (hint: check the agent's address)"),
    "another JSON": ({"node": b"[1]"}, "the response does not describe a node"),
    "wrong types": ({"node": b'{"node": 1, "casstat": 2, "interval_s": 3}'}, "the response does not describe a node"),
    "no clock": ({"node": NODE, "time": b'{"received_s": "x", "sent_s": 1}'}, "does not describe a node"),
    "a clock at infinity": ({"node": NODE, "time": b'{"received_s": 1e999, "sent_s": 1}'}, "does not describe a node"),
    "no list": ({"node": NODE, "time": TIME, "journal": b"{}"}, "no ticks were recorded"),
    "a list of numbers": ({"node": NODE, "time": TIME, "journal": b"[1]"}, "is not a list of journal files"),
    "a foreign path": (
        {"node": NODE, "time": TIME, "journal": b'[{"name": "../../etc/x.jsonl.zst"}]'},
        "is not a list of journal files",
    ),
    "a deleted file": (
        {"node": NODE, "time": TIME, "journal": b'[{"name": "%s"}]' % GONE.encode()},
        f"{GONE}: http://",
    ),
    "a damaged file": (
        {"node": NODE, "time": TIME, "journal": b'[{"name": "%s"}]' % GONE.encode(), f"journal/{GONE}": bytes(5000)},
        "no ticks were recorded",
    ),
    "an endless response": ({"node": b"[" + b" " * (17 << 20)}, "response larger than 16 MiB"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_an_agent_that_misbehaves_is_an_error_of_one_line(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies, message = WRONG[kind]
    with closing(FakeAgentServer({f"/api/v1/{path}": body for path, body in bodies.items()})) as fake:
        code, out, errors = fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
    assert (code, out) == (1, "")
    first, second = errors.splitlines()
    assert message in first
    assert second == "casstat: nothing fetched"
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_an_error_and_leaves_no_incomplete_file(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with file_size_limit(1000):
        code, _, errors = fetch(capsys, address(agent), "--from", str(begin_s), "-o", str(run))
    assert code == 1
    assert errors == f"casstat: {run}: File too large\n"
    assert not run.exists()
