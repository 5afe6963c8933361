"""`casstat fetch` writes complete recordings of a past period, even over connections that break."""

import contextlib
import csv
import io
import json
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from errno import ENOSPC
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cli.main import main
from cli.runs.fetch_program import Progress
from collector.cluster.live.node_address import parse_address
from collector.http.access import Access
from collector.journal.reader import entries, read, read_lines
from collector.journal.record_lines import resealed
from collector.journal.segments import journal_files
from collector.journal.tick_order import Integrity, TickOrder
from collector.runs import agent_client, clock_offset, fetching
from collector.runs.agent_client import AgentClient
from collector.runs.clock_offset import ClockOffset
from collector.runs.fetching import FetchRange, fetched
from collector.runs.run_file import NodeClock, read_run
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
def serving(folder: Path, name: str, begin_s: float, ticks: int = TICKS) -> Iterator[Server]:
    """Serve the API of an agent that has recorded this many ticks."""
    record(folder, busy(name, ticks, begin_s=begin_s))
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


def test_a_merge_contains_ticks_at_the_limits_in_spite_of_the_error_of_a_clock(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    period = ("--from", str(begin_s + 300), "--until", str(begin_s + 309))
    with serving(tmp_path / "other", "n2", begin_s) as other:
        fetch(capsys, address(agent), address(other), *period, "-o", str(run))
    content = json.loads((run / "run.json").read_text())
    for node, offset_s in zip(content["nodes"], (0.0004, -0.0004), strict=True):
        node["clocks"] = [{"at_s": begin_s + 400, "offset_s": offset_s, "error_s": 0.0005}]
    (run / "run.json").write_text(json.dumps(content))
    for limits in ((), period):
        assert main(["merge", str(run), "-o", str(tmp_path / "merged"), "-i", "1", *limits]) == 0
        with (tmp_path / "merged" / "rows.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["node"] == "cluster"]
        assert [(row["nodes"], row["reads"]) for row in rows] == [("2", "20")] * 10


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


def test_a_part_of_a_run_and_a_directory_of_runs_cannot_be_merged(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "runs" / "r1"
    fetch(capsys, address(agent), "--last", "60s", "-o", str(run))
    (file,) = journal_files(run)
    for path in (run / "nodes", run / "nodes" / "n1", file):
        assert main(["merge", str(path), "-o", str(tmp_path / "merged")]) == 2
        assert f"is a part of the run {run} (hint" in capsys.readouterr().err
    assert main(["merge", str(run.parent), "-o", str(tmp_path / "merged")]) == 2
    assert f"contains runs (hint: use one of them, such as {run})" in capsys.readouterr().err


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
    monkeypatch.setattr(agent_client, "MIN_PROGRESS_BYTES", 1)
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


def test_an_empty_directory_in_which_nothing_was_fetched_is_kept(
    agent: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    code, _, errors = fetch(capsys, address(agent), "--from", "5", "--until", "6", "-o", str(run))
    assert code == 1
    assert "no ticks were recorded in this time range" in errors
    assert list(run.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "use either --last or --from"),
        (("--last", "1h", "--from", "10:00"), "specify either --last or --from"),
        (("--from", "-inf"), "the beginning of the period is out of range"),
        (("--from", "1e15"), "the beginning of the period is out of range"),
        (("--from", "5", "--until", "inf"), "the end of the period is out of range"),
        (("--last", "9999999d"), "the beginning of the period is out of range"),
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


Respond = Callable[[BaseHTTPRequestHandler], None]


class FakeAgentServer:
    """Responds to each path with given bytes, or as a function does, and to all others with HTTP 404.

    Attributes: the number of connections, and the requested paths.
    """

    def __init__(self, bodies: Mapping[str, "bytes | Respond"]) -> None:
        self.connections = 0
        self.paths: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                fake.paths.append(path)
                body = bodies.get(path, b"{}")
                if not isinstance(body, bytes):
                    body(self)
                    return
                self.send_response(200 if path in bodies else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        class QuietServer(ThreadingHTTPServer):
            def process_request(self, *arguments: Any) -> None:
                fake.connections += 1
                super().process_request(*arguments)

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
LIST = b'[{"name": "%s", "size_bytes": 5000}]' % GONE.encode()
MANY = json.dumps([{"name": f"{number}.jsonl.zst", "size_bytes": 1} for number in range(10_001)]).encode()
WRONG: dict[str, tuple[dict[str, bytes], str]] = {
    "a web server": ({}, "HTTP 404: path not found"),
    "not JSON": ({"node": b"<html>"}, "the response is not JSON (hint: check the agent's address)"),
    "another JSON": ({"node": b"[1]"}, "the response does not describe a node"),
    "wrong types": ({"node": b'{"node": 1, "casstat": 2, "interval_s": 3}'}, "the response does not describe a node"),
    "an interval of NaN": ({"node": NODE.replace(b"1.0}", b"NaN}")}, "the response does not describe a node"),
    "a huge interval": ({"node": NODE.replace(b"1.0}", b"1" * 400 + b"}")}, "the response does not describe a node"),
    "an interval of 0": ({"node": NODE.replace(b"1.0}", b"0}")}, "the response does not describe a node"),
    "a huge name": ({"node": NODE.replace(b"n1", b"n" * (1 << 20))}, "the response does not describe a node"),
    "a huge time": (
        {"node": NODE, "time": b'{"received_s": 1' + b"0" * 400 + b', "sent_s": 1}'},
        "does not describe a node",
    ),
    "a time as text": (
        {"node": NODE, "time": b'{"received_s": "1700000000", "sent_s": 1700000000}'},
        "does not describe a node",
    ),
    "a boolean as time": ({"node": NODE, "time": b'{"received_s": true, "sent_s": true}'}, "does not describe a node"),
    "a distant clock": ({"node": NODE, "time": b'{"received_s": 1e308, "sent_s": 1e308}'}, "a century off"),
    "a clock that runs backwards": (
        {"node": NODE, "time": b'{"received_s": 1700000000, "sent_s": 1600000000}'},
        "the agent's clock was changed during the measurement",
    ),
    "no clock": ({"node": NODE, "time": b'{"received_s": "x", "sent_s": 1}'}, "does not describe a node"),
    "a clock at infinity": ({"node": NODE, "time": b'{"received_s": 1e999, "sent_s": 1}'}, "does not describe a node"),
    "no list": ({"node": NODE, "time": TIME, "journal": b"{}"}, "is not a list of journal files"),
    "a list of numbers": ({"node": NODE, "time": TIME, "journal": b"[1]"}, "is not a list of journal files"),
    "a foreign path": (
        {"node": NODE, "time": TIME, "journal": b'[{"name": "../../etc/x.jsonl.zst", "size_bytes": 1}]'},
        "'../../etc/x.jsonl.zst' is not the name of a journal file",
    ),
    "no sizes": ({"node": NODE, "time": TIME, "journal": b'[{"name": "a.jsonl.zst"}]'}, "is not a list of journal"),
    "too many files": ({"node": NODE, "time": TIME, "journal": MANY}, "more than 10000 files in the time range"),
    "a deleted file": (
        {"node": NODE, "time": TIME, "journal": LIST},
        f"{GONE}: http://",
    ),
    "a damaged file": (
        {"node": NODE, "time": TIME, "journal": LIST, f"journal/{GONE}": bytes(5000)},
        "1 damaged section in its journal",
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
    assert errors.splitlines() == [f"casstat: {run}/nodes/n1: File too large", f"casstat: {run}: File too large"]
    assert not run.exists()


def agent_paths(**bodies: "bytes | Respond") -> dict[str, "bytes | Respond"]:
    """Return the responses of an agent at 2023-11-14 22:13:20 whose journal is empty, apart from the given ones."""
    return {f"/api/v1/{path}": body for path, body in {"node": NODE, "time": TIME, "journal": b"[]", **bodies}.items()}


def test_all_requests_to_an_agent_use_one_connection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(FakeAgentServer(agent_paths())) as fake:
        fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
        assert fake.paths.count("/api/v1/time") == 8
        assert fake.connections == 1


def test_connections_of_nodes_with_a_problem_are_closed(tmp_path: Path) -> None:
    with closing(FakeAgentServer({"/api/v1/node": b"[1]"})) as fake:
        client = AgentClient(parse_address(fake.address, "http"), Access())
        (node,) = fetched([client], FetchRange(0, 1), tmp_path / "run").nodes
    assert "does not describe a node" in node.problem
    assert client._connection is None


def dribble(handler: BaseHTTPRequestHandler) -> None:
    """Send a very long body, one byte at a time."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 30))
    handler.end_headers()
    with contextlib.suppress(OSError):
        while not threading.Event().wait(0.02):
            handler.wfile.write(b" ")


def test_a_json_response_has_one_deadline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "TIMEOUT_S", 0.2)
    with closing(FakeAgentServer({"/api/v1/node": dribble})) as fake:
        code, _, errors = fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
    assert code == 1
    assert "no complete response in time" in errors


def test_a_slow_download_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "MAX_START_S", 0.2)
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)
    with closing(FakeAgentServer(agent_paths(journal=LIST, **{f"journal/{GONE}": dribble}))) as fake:
        code, _, errors = fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
    assert code == 1
    assert "download too slow" in errors


def test_a_file_that_is_larger_than_listed_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "MAX_GROWTH_BYTES", 100)
    with closing(FakeAgentServer(agent_paths(journal=LIST, **{f"journal/{GONE}": bytes(5101)}))) as fake:
        code, _, errors = fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
    assert code == 1
    assert "the file is larger than its listed size" in errors


def one_more_byte(handler: BaseHTTPRequestHandler) -> None:
    """Send one byte of the requested range, and close the connection."""
    handler.send_response(206 if "Range" in handler.headers else 200)
    handler.send_header("Content-Length", "1000")
    handler.send_header("ETag", '"1"')
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.close_connection = True


def test_attempts_with_little_progress_are_limited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)
    with closing(FakeAgentServer(agent_paths(journal=LIST, **{f"journal/{GONE}": one_more_byte}))) as fake:
        code, _, errors = fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
        assert fake.paths.count(f"/api/v1/journal/{GONE}") == agent_client.MAX_ATTEMPTS
    assert code == 1
    assert "response truncated" in errors


def test_directories_are_created_before_and_removed_after_all_journals_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    seen = []

    def no_files(handler: BaseHTTPRequestHandler) -> None:
        seen.append(sorted(path.name for path in (run / "nodes").iterdir()))
        handler.send_response(200)
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"[]")

    bodies = agent_paths(journal=no_files)
    with closing(FakeAgentServer(bodies)) as one, closing(FakeAgentServer(bodies)) as other:
        fetch(capsys, one.address, other.address, "--last", "1h", "-o", str(run))
    assert seen == [["n1", "n1~2"]] * 2
    assert not run.exists()


class FullDisk(io.BytesIO):
    """A file whose buffer cannot be written when its position changes."""

    def seek(self, _offset: int, _whence: int = 0, /) -> int:
        raise OSError(ENOSPC, "No space left on device")


def test_a_full_disk_is_noticed_when_a_download_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)

    def replaced(handler: BaseHTTPRequestHandler) -> None:
        del handler.headers["Range"]
        one_more_byte(handler)

    with closing(FakeAgentServer({"/file": replaced})) as fake:
        client = AgentClient(parse_address(fake.address, "http"), Access())
        with closing(client), pytest.raises(OSError, match="No space left"):
            client.download("/file", 1000, FullDisk())


def test_a_renamed_journal_file_is_fetched(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = journal_files(tmp_path / "journal")
    file.rename(file.with_name("Monday's night (é).jsonl.zst"))
    code, _, errors = fetch(capsys, address(agent), "--from", str(begin_s), "-o", str(tmp_path / "run"))
    assert (code, errors) == (0, "")
    assert len(ticks_of(tmp_path / "run")) == TICKS


FAKE_BEGIN_S = 1_700_000_000.0


def recorded_file(tmp_path: Path, ticks: int = 400) -> bytes:
    """Return a journal file whose ticks begin at the fake agent's time."""
    (file,) = journal_files(record(tmp_path / "fake", busy("n1", ticks, begin_s=FAKE_BEGIN_S)))
    return file.read_bytes()


def fake_period(begin_s: float, end_s: float) -> tuple[str, ...]:
    """Return the options for a period on the fake agent's clock, which stands still at FAKE_BEGIN_S."""
    now_s = time.time()
    return "--from", str(begin_s + now_s), "--until", str(end_s + now_s)


def test_a_file_that_is_listed_twice_is_fetched_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = recorded_file(tmp_path)
    entry = {"name": GONE, "size_bytes": len(content)}
    twice = json.dumps([entry, entry]).encode()
    with closing(FakeAgentServer(agent_paths(journal=twice, **{f"journal/{GONE}": content}))) as fake:
        code, out, _ = fetch(capsys, fake.address, *fake_period(-10, 500), "-o", str(tmp_path / "run"))
        assert fake.paths.count(f"/api/v1/journal/{GONE}") == 1
    assert code == 0
    assert "n1: 400 ticks" in out


def test_a_file_with_an_unusable_name_is_skipped_with_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = recorded_file(tmp_path)
    names = (GONE, ".hidden.jsonl.zst", "a/b.jsonl.zst", "\x1b.jsonl.zst", "x" * 300 + ".jsonl.zst", "x.txt")
    files = json.dumps([{"name": name, "size_bytes": len(content)} for name in names]).encode()
    with closing(FakeAgentServer(agent_paths(journal=files, **{f"journal/{GONE}": content}))) as fake:
        code, out, errors = fetch(capsys, fake.address, *fake_period(-10, 500), "-o", str(tmp_path / "run"))
    assert code == 1
    assert "n1: 400 ticks" in out
    assert "'.hidden.jsonl.zst' is not the name of a journal file" in errors
    assert re.search(r" \(and \d more\)\n", errors)
    (node,) = read_run(tmp_path / "run").nodes
    assert len(node.problem) <= 200


def test_a_header_that_cannot_be_written_is_a_problem_of_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "fake", busy("n1", 400, begin_s=FAKE_BEGIN_S))
    (file,) = journal_files(tmp_path / "fake")
    texts = [line for line in read_lines(file) if isinstance(line, bytes)]
    lines = (resealed(text.replace(b'{"head":{', b'{"head":{"extra":1e999,')) for text in texts)
    content = zstandard.compress(b"".join(lines))
    listed = json.dumps([{"name": GONE, "size_bytes": len(content)}]).encode()
    with closing(FakeAgentServer(agent_paths(journal=listed, **{f"journal/{GONE}": content}))) as fake:
        code, out, errors = fetch(capsys, fake.address, *fake_period(390, 500), "-o", str(tmp_path / "run"))
    assert (code, out) == (1, "")
    assert "malformed record" in errors.splitlines()[0]
    assert not (tmp_path / "run").exists()


def test_ticks_shortly_before_the_period_are_not_a_recording_of_it(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    after_s = begin_s + TICKS + 60
    code, out, errors = fetch(
        capsys, address(agent), "--from", str(after_s), "--until", str(after_s + 10), "-o", str(run)
    )
    assert (code, out) == (1, "")
    assert "no ticks were recorded in this time range" in errors
    assert not run.exists()


def test_damage_is_a_problem_of_the_node(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = journal_files(tmp_path / "journal")
    content = bytearray(file.read_bytes())
    half = len(content) // 2
    content[half:] = b"\xff" * half
    file.write_bytes(content)
    code, out, errors = fetch(capsys, address(agent), "--from", str(begin_s), "-o", str(tmp_path / "run"))
    assert code == 1
    assert out.startswith("n1: ")
    assert "1 damaged section in its journal" in errors
    (node,) = read_run(tmp_path / "run").nodes
    assert "1 damaged section" in node.problem


def test_a_run_cannot_be_combined_with_other_recordings(
    agent: Server, tmp_path: Path, begin_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    fetch(capsys, address(agent), "--from", str(begin_s), "-o", str(run))
    for paths in ((run, tmp_path / "journal"), (tmp_path / "journal", run)):
        assert main(["merge", *map(str, paths), "-o", str(tmp_path / "merged")]) == 2
        assert f"{run}: a run cannot be combined with other recordings" in capsys.readouterr().err


def test_printed_times_are_on_the_clock_of_this_host(
    agent: Server,
    tmp_path: Path,
    begin_s: float,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The node's clock is 1000 s ahead.
    measured = ClockOffset(begin_s, 1000.0, 0.001)
    monkeypatch.setattr(clock_offset, "measured", lambda *_: measured)
    period = ("--from", str(begin_s - 700), "--until", str(begin_s - 641))
    code, out, _ = fetch(capsys, address(agent), *period, "-o", str(tmp_path / "run"))
    assert code == 0
    first, last = (datetime.fromtimestamp(begin_s + after_s) for after_s in (-700, -641))
    assert f"n1: 60 ticks, {first} to {last}, clock +1000.0000 s" in out


def test_progress_is_erased_and_needs_no_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress(iter(range(10)).__next__)
    progress.add(100_000_000)
    progress.add(-99_000_000)
    assert terminal.getvalue() == "\r100.0 MB fetched\x1b[K\r1.0 MB fetched\x1b[K"
    monkeypatch.setattr(sys, "stderr", None)
    Progress(iter(range(10)).__next__).add(5)


def interrupting(part: bytes) -> Respond:
    """Return a response that sends `part` of a body, interrupts the main thread and then stalls."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if part:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(part)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        # Ends when the client shuts down the connection.
        handler.rfile.read(1)

    return respond


@pytest.mark.parametrize("part", [b"", b"["])
@pytest.mark.parametrize("path", ["node", "time", "journal", f"journal/{GONE}"])
def test_ctrl_c_ends_a_fetch_from_an_agent_that_stalls(
    path: str, part: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun_s = time.monotonic()
    bodies: dict[str, bytes | Respond] = {"journal": LIST, path: interrupting(part)}
    with closing(FakeAgentServer(agent_paths(**bodies))) as fake:
        code, out, _ = fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
    assert (code, out) == (130, "")
    assert not (tmp_path / "run").exists()
    # The fetch ended long before a request would have timed out.
    assert time.monotonic() - begun_s < agent_client.TIMEOUT_S / 2


def test_ctrl_c_ends_the_pause_before_another_attempt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 3600.0)

    def broken(handler: BaseHTTPRequestHandler) -> None:
        one_more_byte(handler)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with closing(FakeAgentServer(agent_paths(journal=LIST, **{f"journal/{GONE}": broken}))) as fake:
        code, _, _ = fetch(capsys, fake.address, "--last", "1h", "-o", str(tmp_path / "run"))
    assert code == 130


def test_nodes_that_are_complete_on_ctrl_c_are_kept(
    agent: Server,
    tmp_path: Path,
    begin_s: float,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "MAX_PARALLEL", 1)
    run = tmp_path / "run"
    with closing(FakeAgentServer(agent_paths(journal=interrupting(b"")))) as fake:
        code, out, errors = fetch(capsys, address(agent), fake.address, "--from", str(begin_s), "-o", str(run))
    assert code == 130
    assert out.startswith("n1: 600 ticks")
    assert errors == f"casstat: {run}: the run is incomplete\n"
    complete, interrupted = read_run(run).nodes
    assert (complete.ticks, complete.problem, len(complete.clocks)) == (TICKS, "", 1)
    assert (interrupted.ticks, interrupted.problem, interrupted.folder) == (0, "interrupted", "")
    assert ticks_of(run) == ticks_of(tmp_path / "journal")
    assert [path.name for path in (run / "nodes").iterdir()] == ["n1"]


def test_nodes_that_are_complete_when_the_disk_is_full_are_kept(
    agent: Server,
    tmp_path: Path,
    begin_s: float,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "MAX_PARALLEL", 1)
    run = tmp_path / "run"
    with serving(tmp_path / "short", "n0", begin_s, ticks=10) as short:
        (file,) = journal_files(tmp_path / "short")
        with file_size_limit(2 * file.stat().st_size + 2000):
            code, out, errors = fetch(capsys, address(short), address(agent), "--from", str(begin_s), "-o", str(run))
    assert code == 1
    assert out.startswith("n0: 10 ticks")
    assert errors.splitlines() == [
        f"casstat: {run}/nodes/n1: File too large",
        f"casstat: {run}: the run is incomplete",
        f"casstat: {run}: File too large",
    ]
    assert [(node.ticks, node.problem) for node in read_run(run).nodes] == [
        (10, ""),
        (0, f"{run}/nodes/n1: File too large"[:200]),
    ]


def test_a_clock_that_was_changed_since_an_earlier_measurement_costs_no_ticks(
    agent: Server, tmp_path: Path, begin_s: float
) -> None:
    """The recording has times of both clocks, so the ticks of both possible time ranges are fetched."""
    wanted = FetchRange(begin_s + 100, begin_s + 200)
    counts = []
    for number, earlier in enumerate(([], [(NodeClock(begin_s, 50.0, 0.0),)], [(NodeClock(begin_s, -50.0, 0.0),)])):
        client = AgentClient(parse_address(address(agent), "http"), Access())
        (node,) = fetched([client], wanted, tmp_path / str(number), earlier=earlier).nodes
        counts.append(node.ticks)
    assert counts[1] == counts[2] == counts[0] + 50
