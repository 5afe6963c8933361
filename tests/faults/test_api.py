"""The agent's API under attack: it keeps responding, logs only single lines, and uses bounded memory."""

import base64
import json
import random
import re
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import psutil
import pytest

from collector.model.sample_json import decoded
from exporters.api import sockets
from exporters.api.sockets import IDLE_S
from tests.exporters.api.scripted_agent import FILES
from tests.faults.api import HOST, Api, read_all, read_until, running, status
from tests.faults.program import within
from tests.waiting import eventually

GUESSES = 1000
# Instead of the 10 s that clients have.
HEAD_S = 2.0


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path) as started:
        yield started
        assert started.is_sound()


def descriptors() -> int:
    return psutil.Process().num_fds()


def test_thousands_of_silent_connections_do_not_block_others(api: Api) -> None:
    limit = psutil.Process().rlimit(psutil.RLIMIT_NOFILE)[0]
    count = min(10_000, limit - descriptors() - 1000)
    crowd: list[socket.socket] = []
    before = psutil.Process().memory_info().rss
    try:
        for number in range(count):
            crowd.append(api.connect())
            if number % 1000 == 999:
                with within(2):
                    assert status(api.get("/metrics")) == 200
        # The count includes the clients' sockets, because they are in the same process as the server.
        assert descriptors() < count + 512 + 500
        assert psutil.Process().memory_info().rss - before < 64 << 20
        assert len(api.server._serving.connections) <= 512
    finally:
        for stream in crowd:
            stream.close()


def test_a_head_sent_byte_by_byte_is_cut_off_in_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "HEAD_S", HEAD_S)
    begun_s = time.monotonic()
    with api.connect() as slow, api.connect() as silent:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ")
        slow.settimeout(0.2)
        ended = False
        while not ended and time.monotonic() - begun_s < HEAD_S + 60:
            try:
                slow.sendall(b"a")
                ended = not slow.recv(1)
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended
        assert time.monotonic() - begun_s > HEAD_S - 1
        assert read_all(silent) == b""
    eventually(lambda: any(re.search(r"closed \d+ connections? that sent no request", line) for line in api.log_lines))


def test_a_missing_body_is_cut_off_in_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "BODY_S", HEAD_S)
    head = f"POST /api/v1/runs HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
    with within(HEAD_S):
        assert api.ask(head.encode()) == b""
    assert api.agent.known == {}


def test_a_body_after_an_error_response_leaves_the_idle_timeout_in_place(api: Api) -> None:
    with api.connect() as stream:
        stream.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n")
        assert status(read_until(stream, b"}")) == 403
        stream.sendall(b"body")
        stream.sendall(b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status(read_until(stream, b"ready\n")) == 200
        (connection,) = api.server._serving.connections._all
        eventually(lambda: connection.is_expired(time.monotonic() + IDLE_S + 1))


def test_head_requests_get_no_body_and_keep_the_connection(api: Api) -> None:
    paths = ("/metrics", "/api/v1/samples?since=0", f"/api/v1/journal/{FILES[0]}", "/", "/nowhere", "/api/v1/node")
    heads = b"".join(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths)
    live = b"HEAD /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    answer = api.ask(heads + live)
    assert [line[9:12] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")] == [
        *(b"200", b"200", b"200", b"200", b"404", b"200", b"200")
    ]
    assert all(b"\r\n" not in head or b": " in head for head in answer.split(b"\r\n\r\n")[:-1])
    assert answer.endswith(b"\r\n\r\n")


NOT_HTTP = {
    "garbage": b"\x00\xff\xfe garbage\r\n\r\n",
    "a TLS greeting": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "another protocol": b"SSH-2.0-OpenSSH_9.0\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    "a negative length": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "a length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a malformed chunk size": b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a target that is not ASCII": b"GET \x80\x81 HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "no host": b"GET /metrics HTTP/1.1\r\n\r\n",
    "another host": b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
}


@pytest.mark.parametrize("name", NOT_HTTP)
def test_malformed_requests_are_refused(api: Api, name: str) -> None:
    with within(2):
        assert status(api.ask(NOT_HTTP[name])) in (0, 400, 403, 404, 405)


def test_the_agent_responds_after_corrupted_requests(api: Api) -> None:
    chance = random.Random(7)  # noqa: S311
    for _ in range(100):
        request = bytearray(b"GET /api/v1/samples?since=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        for _ in range(chance.randrange(1, 4)):
            request[chance.randrange(len(request))] = chance.randrange(256)
        with api.connect() as stream:
            stream.sendall(request)
            stream.shutdown(socket.SHUT_WR)
            stream.settimeout(60)
            # The server must respond or close the connection in time; otherwise `read_all` times out.
            assert status(read_all(stream)) in (0, 200, 400, 403, 404, 405)
        assert status(api.get("/-/healthy")) == 200


@pytest.mark.parametrize(
    ("raw_request", "expected"),
    [
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5_000 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 500_000, 431),
        (b"POST /api/v1/runs HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n", 413),
        (b"POST /api/v1/runs HTTP/1.1\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"4000\r\n"
            + b"a" * 0x4000
            + b"\r\n",
            0,
        ),
    ],
    ids=["target", "header", "headers", "endless header", "body", "length", "chunk"],
)
def test_heads_and_bodies_are_bounded(api: Api, raw_request: bytes, expected: int) -> None:
    with api.connect() as stream, within(3):
        if not expected:
            stream.sendall(raw_request + raw_request[raw_request.index(b"4000") :] * 9)
            # The server learns the size of a chunked body only while reading it. If it responds and closes the
            # connection before the end of the body, the response may be lost.
            assert status(read_all(stream)) in (0, 200, 413)
            return
        stream.sendall(raw_request)
        answer = read_all(stream)
    assert status(answer) in (expected, 0)
    assert status(answer) or len(raw_request) > 100_000
    assert not answer or list(json.loads(answer.partition(b"\r\n\r\n")[2])) == ["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/journal/../../../../etc/passwd",
        "/api/v1/journal/..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/journal/%2e%2e%2fjournal%2f" + FILES[0],
        "/api/v1/journal/..%5c..%5cetc",
        "/api/v1/journal/%252e%252e%252fsecret.txt",
        "/api/v1/journal/secret.txt",
        "/api/v1/journal/.lock",
        "/api/v1/journal/20231115T011320.jsonl.zst",
        "/api/v1/journal//etc/passwd",
        "/api/v1/journal/%00",
        "/../../etc/passwd",
        "//etc/passwd",
    ],
)
def test_only_journal_files_can_be_downloaded(api: Api, path: str) -> None:
    answer = api.get(path)
    assert status(answer) in (400, 404)
    assert b"secret" not in answer
    assert b"root:" not in answer


def test_pipelined_requests_are_answered_in_order(api: Api) -> None:
    single = f"GET /-/healthy HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    last = single.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert api.ask(single * 20 + last).count(b"healthy\n") == 21
    # This many requests exceed the limit on pipelined requests.
    assert api.ask(single * 5000 + last).count(b"healthy\n") < 5001


def test_clients_that_do_not_read_take_little_memory(api: Api) -> None:
    before = psutil.Process().memory_info().rss
    streams = [api.connect() for _ in range(50)]
    for stream in streams:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
    with within(2):
        assert status(api.get("/metrics")) == 200
    assert psutil.Process().memory_info().rss - before < 64 << 20
    for stream in streams:
        stream.close()


def test_a_thousand_wrong_passwords_do_not_delay_other_users(tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(6)).decode()
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{alice: {hashed}}}\n")
    right = f"Authorization: Basic {base64.b64encode(b'alice:right').decode()}"
    with running(tmp_path, config) as api:
        assert status(api.get("/metrics")) == 401
        assert status(api.get("/metrics", right)) == 200
        statuses: list[int] = []
        began_s = time.monotonic()

        def guess(remainder: int) -> None:
            for number in range(remainder, GUESSES, 10):
                credentials = base64.b64encode(b"alice:wrong%d" % number).decode()
                statuses.append(status(api.get("/metrics", f"Authorization: Basic {credentials}")))

        threads = [threading.Thread(target=guess, args=(remainder,)) for remainder in range(10)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            # A user who has already logged in gets a response at once.
            with within(1):
                assert status(api.get("/-/ready", right)) == 200
        assert len(statuses) == GUESSES
        assert set(statuses) <= {401, 503}
        logged = [line for line in api.log_lines if "wrong user name or password" in line]
        # Failed logins are logged at most once a minute.
        assert 1 <= len(logged) <= 3 + (time.monotonic() - began_s) // 60
        assert not any("alice" in line or "wrong0" in line for line in api.log_lines)


def test_an_event_stream_has_recent_ticks_new_ticks_and_an_end(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        with api.connect() as stream, stream.makefile("rb") as lines:
            stream.sendall(b"GET /api/v1/samples?since=0 HTTP/1.1\r\nHost: [::1]\r\nAccept: text/event-stream\r\n\r\n")
            times = []
            for line in lines:
                if line.startswith(b"data: "):
                    times.append(decoded(json.loads(line[6:])).tick.time_s)
                    if len(times) >= 3:
                        api.agent.tick()
                if len(times) == 6:
                    break
            first = times[0]
            assert times == [first + number for number in range(6)]
            with within(1):
                api.server.stop()
                rest = lines.read()
            assert rest.endswith(b"0\r\n\r\n")
        assert not [line for line in api.log_lines if "failed" in line]


def test_an_event_stream_without_ticks_has_heartbeats(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.api.samples_endpoint.HEARTBEAT_S", 0.1)
    with api.connect() as stream, stream.makefile("rb") as lines:
        stream.sendall(b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        assert [line for line in (lines.readline() for _ in range(20)) if line.startswith(b":")][:2] == [
            b": nothing yet\n",
            b": nothing yet\n",
        ]


def test_an_event_stream_resumes_after_the_last_event(api: Api) -> None:
    last = api.agent.time_s - 1
    with api.connect() as stream, stream.makefile("rb") as lines:
        head = b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        stream.sendall(head + f"Last-Event-ID: {last}\r\n\r\n".encode())
        first = next(line for line in lines if line.startswith(b"id: "))
    assert first == f"id: {api.agent.time_s!r}\n".encode()


def test_a_slow_event_stream_is_closed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.api.sockets.STALLED_S", 1.0)
    others = len(api.agent.recent._listeners)
    with api.connect() as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.sendall(b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        assert stream.recv(1)
        eventually(lambda: len(api.agent.recent._listeners) == others + 1)

        def is_dropped() -> bool:
            # The client does not read: once the socket buffers are full, nothing more can be sent.
            api.agent.tick(2)
            return len(api.agent.recent._listeners) == others

        eventually(is_dropped)
        eventually(lambda: not len(api.server._serving.connections))


def test_event_streams_are_bounded_and_closed_ones_make_room(api: Api) -> None:
    ask = b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    streams, others = [], len(api.agent.recent._listeners)
    for _ in range(16):
        streams.append(api.connect())
        streams[-1].sendall(ask)
        assert streams[-1].recv(12) == b"HTTP/1.1 200"
    eventually(lambda: len(api.agent.recent._listeners) == others + 16)
    with api.connect() as one_more:
        one_more.sendall(ask)
        assert one_more.recv(12) == b"HTTP/1.1 503"
    for stream in streams:
        stream.close()
    eventually(lambda: len(api.agent.recent._listeners) == others)


def test_the_documented_curl_commands_get_samples_and_begin_mark_and_end_a_run(api: Api) -> None:
    page = (Path(__file__).parents[2] / "docs" / "agent.md").read_text().replace("\\\n", "")
    lines = [line for line in page.splitlines() if line.startswith("curl ")]
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line.replace("127.0.0.1:17199", f"{HOST}:{api.port}").replace("ID", "1"))
        done = subprocess.run(["/usr/bin/env", *words, "-sSf"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    (run,) = api.agent.known.values()
    assert (run["name"], run["marks"][0]["text"], run["end_s"] is not None) == ("ramp", "100 clients", True)


def test_a_failing_handler_causes_one_log_line_and_status_500(api: Api) -> None:
    def broken() -> str:
        raise RuntimeError("two\nlines")

    api.agent.unhealthy = broken  # type: ignore[method-assign]
    assert status(api.get("/-/healthy")) == 500
    eventually(lambda: bool(api.log_lines))
    assert "request failed: RuntimeError: two lines (test_api.py:" in api.log_lines[0]
    del api.agent.unhealthy


def test_a_file_that_shrinks_during_a_download_is_cut_off(api: Api) -> None:
    path = api.agent.journal / FILES[0]
    path.write_bytes(b"x" * (64 << 20))
    with api.connect() as stream:
        stream.sendall(f"GET /api/v1/journal/{FILES[0]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert stream.recv(12) == b"HTTP/1.1 200"
        path.write_bytes(b"x")
        assert len(read_all(stream)) < 64 << 20


def test_the_server_stops_within_a_second_despite_open_connections(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        streams = [api.connect() for _ in range(20)]
        for stream in streams[:10]:
            stream.sendall(b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
            assert stream.recv(12)
        for stream in streams[10:15]:
            stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        with within(0.1):
            api.server.stop()
        assert not api.server._thread.is_alive()
        for stream in streams:
            stream.close()
