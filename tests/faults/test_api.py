"""The agent's API and those who mean it ill: it goes on answering, says so in a line, and holds no more than it may."""

import base64
import json
import random
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
from exporters.api.connections import HEAD_S, IDLE_S
from tests.exporters.api.served import FILES
from tests.faults.api import HOST, Api, came, everything, running, status, until
from tests.faults.program import within

GUESSES = 1000


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path) as standing:
        yield standing
        assert standing.is_sound()


def descriptors() -> int:
    return psutil.Process().num_fds()


def test_thousands_who_connect_and_say_nothing_do_not_keep_others_out(api: Api) -> None:
    limit = psutil.Process().rlimit(psutil.RLIMIT_NOFILE)[0]
    many = min(10_000, limit - descriptors() - 1000)
    crowd: list[socket.socket] = []
    before = psutil.Process().memory_info().rss
    try:
        for number in range(many):
            crowd.append(api.connect())
            if number % 1000 == 999:
                with within(2):
                    assert status(api.get("/metrics")) == 200
        # Theirs and ours are in one process.
        assert descriptors() < many + 512 + 500
        assert psutil.Process().memory_info().rss - before < 64 << 20
        assert len(api.server._serving._visits) <= 512
    finally:
        for stream in crowd:
            stream.close()


def test_who_sends_a_head_byte_by_byte_is_closed_in_time(api: Api) -> None:
    begun_s = time.monotonic()
    with api.connect() as slow, api.connect() as silent:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ")
        slow.settimeout(0.2)
        ended = False
        while not ended and time.monotonic() - begun_s < HEAD_S + 5:
            try:
                slow.sendall(b"a")
                ended = not slow.recv(1)
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended
        assert time.monotonic() - begun_s > HEAD_S - 1
        assert everything(silent) == b""
    until(lambda: any("connections were closed" in line for line in api.said))


def test_a_body_that_does_not_come_is_not_waited_for(api: Api) -> None:
    head = f"POST /api/v1/runs HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
    with within(13):
        assert api.ask(head.encode()) == b""
    assert api.served.known == {}


def test_a_body_that_comes_after_its_refusal_does_not_keep_the_connection_for_ever(api: Api) -> None:
    with api.connect() as stream:
        stream.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n")
        assert status(came(stream, b"}")) == 403
        stream.sendall(b"body")
        stream.sendall(b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status(came(stream, b"ready\n")) == 200
        (visit,) = api.server._serving._visits._all
        until(lambda: visit.is_over(time.monotonic() + IDLE_S + 1))


def test_answers_to_head_are_heads_only_and_the_connection_goes_on(api: Api) -> None:
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
    "nonsense": b"\x00\xff\xfe garbage\r\n\r\n",
    "a TLS greeting": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "another protocol": b"SSH-2.0-OpenSSH_9.0\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a header that is none": b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    "a length that is none": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "a length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk that is none": b"POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a target that is none": b"GET \x80\x81 HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "no host": b"GET /metrics HTTP/1.1\r\n\r\n",
    "another host": b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
}


@pytest.mark.parametrize("name", NOT_HTTP)
def test_what_is_no_request_is_refused(api: Api, name: str) -> None:
    with within(2):
        assert status(api.ask(NOT_HTTP[name])) in (0, 400, 403, 404, 405)


def test_random_bytes_harm_nobody(api: Api) -> None:
    chance = random.Random(7)  # noqa: S311
    for _ in range(100):
        request = bytearray(b"GET /api/v1/samples?since=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        for _ in range(chance.randrange(1, 4)):
            request[chance.randrange(len(request))] = chance.randrange(256)
        with api.connect() as stream:
            stream.sendall(request)
            stream.shutdown(socket.SHUT_WR)
            stream.settimeout(2)
            everything(stream)


@pytest.mark.parametrize(
    ("request_", "expected"),
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
def test_heads_and_bodies_are_bounded(api: Api, request_: bytes, expected: int) -> None:
    with api.connect() as stream, within(3):
        if not expected:
            stream.sendall(request_ + request_[request_.index(b"4000") :] * 9)
            # A body in chunks tells its length at its end; whoever was answered meanwhile is cut off.
            assert status(everything(stream)) in (0, 200, 413)
            return
        stream.sendall(request_)
        answer = everything(stream)
    assert status(answer) in (expected, 0)
    assert status(answer) or len(request_) > 100_000
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
def test_nothing_but_the_journals_files_can_be_had(api: Api, path: str) -> None:
    answer = api.get(path)
    assert status(answer) in (400, 404)
    assert b"secret" not in answer
    assert b"root:" not in answer


def test_many_requests_at_once_on_one_connection_are_answered_in_turn(api: Api) -> None:
    one = f"GET /-/healthy HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert api.ask(one * 20 + last).count(b"healthy\n") == 21
    # More of them than anybody means well are too many.
    assert api.ask(one * 5000 + last).count(b"healthy\n") < 5001


def test_who_does_not_read_is_not_kept_in_memory(api: Api) -> None:
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


def test_a_wrong_password_a_thousand_times(tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(6)).decode()
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{alice: {hashed}}}\n")
    right = f"Authorization: Basic {base64.b64encode(b'alice:right').decode()}"
    with running(tmp_path, config) as api:
        assert status(api.get("/metrics")) == 401
        assert status(api.get("/metrics", right)) == 200
        found: list[int] = []

        def guess(which: int) -> None:
            for number in range(which, GUESSES, 10):
                word = base64.b64encode(b"alice:wrong%d" % number).decode()
                found.append(status(api.get("/metrics", f"Authorization: Basic {word}")))

        threads = [threading.Thread(target=guess, args=(which,)) for which in range(10)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            # Who is known is answered at once meanwhile.
            with within(1):
                assert status(api.get("/-/ready", right)) == 200
        assert len(found) == GUESSES
        assert set(found) <= {401, 503}
        told = [line for line in api.said if "wrong name or password" in line]
        assert 1 <= len(told) <= 3
        assert not any("alice" in line or "wrong0" in line for line in api.said)


def test_who_follows_live_gets_what_there_is_then_every_tick_and_the_end(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        with api.connect() as stream, stream.makefile("rb") as lines:
            stream.sendall(b"GET /api/v1/samples?since=0 HTTP/1.1\r\nHost: [::1]\r\nAccept: text/event-stream\r\n\r\n")
            times = []
            for line in lines:
                if line.startswith(b"data: "):
                    times.append(decoded(json.loads(line[6:])).tick.time_s)
                    if len(times) >= 3:
                        api.served.tick()
                if len(times) == 6:
                    break
            first = times[0]
            assert times == [first + number for number in range(6)]
            with within(1):
                api.server.stop()
                rest = lines.read()
            assert rest.endswith(b"0\r\n\r\n")
        assert not [line for line in api.said if "fault" in line or "failed" in line]


def test_who_follows_while_nothing_happens_hears_that_the_agent_is_there(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporters.api.samples_endpoint.HEARTBEAT_S", 0.1)
    with api.connect() as stream, stream.makefile("rb") as lines:
        stream.sendall(b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        assert [line for line in (lines.readline() for _ in range(20)) if line.startswith(b":")][:2] == [
            b": nothing yet\n",
            b": nothing yet\n",
        ]


def test_who_comes_back_goes_on_where_he_was(api: Api) -> None:
    last = api.served.time_s - 1
    with api.connect() as stream, stream.makefile("rb") as lines:
        head = b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        stream.sendall(head + f"Last-Event-ID: {last}\r\n\r\n".encode())
        first = next(line for line in lines if line.startswith(b"id: "))
    assert first == f"id: {api.served.time_s!r}\n".encode()


def test_who_follows_too_slowly_is_dropped(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.api.connections.STALLED_S", 1.0)
    with api.connect() as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.sendall(b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        assert stream.recv(1)
        until(lambda: len(api.served.recent._listeners) == 1)

        def is_dropped() -> bool:
            # Nobody reads: what is between fills up, then nothing is sent any more.
            api.served.tick(2)
            return not api.served.recent._listeners

        until(is_dropped)
        until(lambda: not len(api.server._serving._visits))


def test_listeners_are_bounded_and_those_who_leave_make_room(api: Api) -> None:
    ask = b"GET /api/v1/samples HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    streams = []
    for _ in range(16):
        streams.append(api.connect())
        streams[-1].sendall(ask)
        assert streams[-1].recv(12) == b"HTTP/1.1 200"
    until(lambda: len(api.served.recent._listeners) == 16)
    with api.connect() as one_more:
        one_more.sendall(ask)
        assert one_more.recv(12) == b"HTTP/1.1 503"
    for stream in streams:
        stream.close()
    until(lambda: not api.served.recent._listeners)


def test_the_documented_curl_lines_begin_mark_and_end_a_run(api: Api) -> None:
    page = (Path(__file__).parents[2] / "docs" / "agent.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("curl ")]
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line.replace("127.0.0.1:17199", f"{HOST}:{api.port}").replace("ID", "1"))
        done = subprocess.run(["/usr/bin/env", *words, "-sSf"], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, done.stderr
    (run,) = api.served.known.values()
    assert (run["name"], run["marks"][0]["text"], run["end_s"] is not None) == ("ramp", "100 clients", True)


def test_an_answer_that_fails_is_a_line_and_a_500(api: Api) -> None:
    def broken() -> str:
        raise RuntimeError("two\nlines")

    api.served.unhealthy = broken  # type: ignore[method-assign]
    assert status(api.get("/-/healthy")) == 500
    until(lambda: bool(api.said))
    assert "an answer failed: RuntimeError: two lines (test_api.py:" in api.said[0]
    del api.served.unhealthy


def test_a_file_that_shrinks_while_it_is_sent_is_cut_off_not_made_up(api: Api) -> None:
    path = api.served.journal / FILES[0]
    path.write_bytes(b"x" * (64 << 20))
    with api.connect() as stream:
        stream.sendall(f"GET /api/v1/journal/{FILES[0]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert stream.recv(12) == b"HTTP/1.1 200"
        path.write_bytes(b"x")
        assert len(everything(stream)) < 64 << 20


def test_the_end_comes_within_a_second_whoever_is_connected(tmp_path: Path) -> None:
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
