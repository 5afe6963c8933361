"""`Jolokia.post` with faulty servers: it fails within its timeout with a one-line error, and then works again."""

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from collector.node.jolokia.client import Jolokia, JolokiaError
from tests.faults import faults
from tests.faults.fake_jolokia import FakeJolokia, Fault, http
from tests.faults.fake_node import PAST
from tests.faults.program import PATIENCE_S, is_one_line, within

READS = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
QUESTION = json.dumps({"type": "read", "mbean": READS, "attribute": "Count"})
SHORT_S, LONG_S = 0.2, 10.0

AT_ONCE: dict[str, tuple[Fault, str]] = {
    "an SSH server": (faults.raw(faults.SSH), "not an HTTP response"),
    "a CQL server": (faults.raw(faults.CQL), "not an HTTP response"),
    "garbage": (faults.raw(bytes(range(256)) * 4), "not an HTTP response"),
    "HTTP/0.9": (faults.raw(b"<html>hello</html>\n"), "not an HTTP response"),
    "a status that is not a number": (faults.raw(b"HTTP/1.1 abc OK\r\n\r\n"), "not an HTTP response"),
    "an unsupported HTTP version": (faults.raw(b"HTTP/9 200 OK\r\n\r\n"), "not an HTTP response"),
    "a header of a megabyte": (faults.raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20)), "not an HTTP response"),
    "endless headers": (faults.endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 100), "not an HTTP response"),
    "an endless status line": (faults.endless(b"HTTP/1.1 200 ", b"O" * 4096), "not an HTTP response"),
    "401": (faults.status("401 Unauthorized", "WWW-Authenticate: Basic"), "HTTP 401.*credentials"),
    "403": (faults.status("403 Forbidden"), "HTTP 403.*policy"),
    "404": (faults.status("404 Not Found"), "HTTP 404.*path not found"),
    "500": (faults.status("500 Internal Server Error"), "HTTP 500 Internal Server Error"),
    "503": (faults.status("503 Service Unavailable", "Retry-After: 1"), "HTTP 503 Service Unavailable"),
    "204": (faults.raw(b"HTTP/1.1 204 No Content\r\n\r\n"), "HTTP 204"),
    "101": (faults.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), "HTTP 101"),
    "an error with control characters in its reason": (
        faults.raw(b"HTTP/1.1 500 \x1b[31mred\r\x85\n\r\n"),
        "HTTP 500",
    ),
    "a very long reason": (faults.raw(b"HTTP/1.1 500 " + b"x" * 60_000 + b"\r\n\r\n"), "HTTP 500"),
    "no response": (faults.close, "connection closed without a response"),
    "a reset": (faults.reset, "connection closed without a response|reset"),
    "a truncated response": (faults.truncated, "truncated"),
    "truncated chunks": (faults.truncated_chunks, "truncated"),
    "a chunk size that is not a number": (faults.raw(faults.CHUNKED + b"xyz\r\n[]\r\n0\r\n\r\n"), "truncated"),
    "a negative chunk size": (
        faults.raw(faults.CHUNKED + b"-5\r\n[{}]\r\n0\r\n\r\n"),
        "truncated|not JSON|match",
    ),
    "a Content-Length that is too large": (faults.wrong_length(10), "truncated"),
    "a Content-Length that is too small": (faults.wrong_length(-10), "not JSON"),
    "an empty body": (faults.body(lambda _: b""), "not JSON"),
    "not JSON": (faults.body(lambda _: b"<html>"), "not JSON"),
    "truncated JSON": (faults.body(lambda body: body[:-2]), "not JSON"),
    "JSON with trailing data": (faults.body(lambda body: body + b"]"), "not JSON"),
    "invalid UTF-8": (faults.body(lambda _: b'[{"value": "\xff\xfe"}]'), "not JSON"),
    "deeply nested JSON": (faults.body(lambda _: b"[" * 1_000_000), "not JSON"),
    "deeply nested objects": (faults.body(lambda _: b'{"a":' * 100_000), "not JSON"),
    "an integer of a million digits": (faults.body(lambda _: b"[" + b"9" * 1_000_000 + b"]"), "not JSON|not match"),
    "an object": (faults.value({}), "does not match"),
    "an error object": (faults.value({"error": "no\n\x1b[31m" + 1000 * "x", "status": 500}), "refused"),
    "a string": (faults.value("pong"), "does not match"),
    "a number": (faults.value(1), "does not match"),
    "null": (faults.value(None), "does not match"),
    "an empty list": (faults.value([]), "does not match"),
    "a list that is too long": (faults.value([{}, {}]), "does not match"),
    "a list of numbers": (faults.value([1]), "does not match"),
    "a list of lists": (faults.value([[]]), "does not match"),
}
ENDLESS: dict[str, Fault] = {
    "no bytes": faults.hang,
    "a head without a body": faults.stalled(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
    "an incomplete body": faults.stalled(b"HTTP/1.1 200 OK\r\n\r\n[{}]"),
    "a length that is not a number": faults.stalled(b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n[{}]"),
    "a negative length": faults.stalled(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n[{}]"),
    "an incomplete chunk": faults.stalled(faults.CHUNKED + b"ffff\r\n[{}]"),
    "an incomplete status line": faults.stalled(b"HTTP/1.1 200"),
    "a head byte by byte": faults.dripping_head,
    "a body byte by byte": faults.dripping_body,
    "chunks byte by byte": faults.dripping_chunks,
    "endless 100 Continue responses": faults.endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "an endless trailer": faults.endless(faults.CHUNKED + b"0\r\n", b"X: y\r\n"),
}
TOO_LARGE: dict[str, Fault] = {
    "100 MB announced": faults.large(100 << 20, announced=True),
    "100 MB not announced": faults.large(100 << 20, announced=False),
    "a terabyte announced": faults.large(1 << 40, announced=True),
    "endless chunks": faults.endless(faults.CHUNKED, b"10000\r\n" + faults.BLOCK + b"\r\n"),
    "an endless body": faults.endless(b"HTTP/1.1 200 OK\r\n\r\n", faults.BLOCK),
}


def error_of(jolokia: Jolokia, timeout_s: float) -> str:
    """Return the message of the error that `post` raises; it must be one line."""
    with within(timeout_s), pytest.raises(JolokiaError) as caught:
        jolokia.post([QUESTION], timeout_s)
    message = str(caught.value)
    assert message.startswith(jolokia.url)
    assert is_one_line(message)
    return message


def read_count(jolokia: Jolokia) -> Any:
    (answer,) = jolokia.post([QUESTION], LONG_S)
    return answer.get("value")


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_malformed_response_is_an_error_and_the_next_request_succeeds(name: str, fake: FakeJolokia) -> None:
    fake.fault, words = AT_ONCE[name]
    with closing(Jolokia(fake.url)) as jolokia:
        assert re.search(words, error_of(jolokia, LONG_S))
        fake.fault = None
        assert read_count(jolokia) == PAST


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_malformed_response_on_a_reused_connection_is_an_error(name: str, fake: FakeJolokia) -> None:
    with closing(Jolokia(fake.url)) as jolokia:
        assert read_count(jolokia) == PAST
        fake.fault, words = AT_ONCE[name]
        assert re.search(words, error_of(jolokia, LONG_S))


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_response_times_out_and_the_next_request_succeeds(name: str, fake: FakeJolokia) -> None:
    with closing(Jolokia(fake.url)) as jolokia:
        fake.fault = ENDLESS[name]
        assert "no complete response in time" in error_of(jolokia, SHORT_S)
        fake.fault = None
        assert read_count(jolokia) == PAST


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_response_that_is_too_large_is_an_error(name: str, fake: FakeJolokia) -> None:
    with closing(Jolokia(fake.url)) as jolokia:
        fake.fault = TOO_LARGE[name]
        assert "larger than" in error_of(jolokia, LONG_S)
        fake.fault = None
        assert read_count(jolokia) == PAST


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_response_that_is_too_large_takes_bounded_memory(name: str, fake: FakeJolokia) -> None:
    fake.fault = TOO_LARGE[name]
    message, grown_mib, _ = ask_in_subprocess(fake.url)
    assert "larger than" in message
    assert grown_mib < 64 + 32


def test_a_response_of_millions_of_values_takes_bounded_memory_and_time(fake: FakeJolokia) -> None:
    body = b'[{"value": [' + 20_000_000 * b"{}," + b"{}]}]"
    fake.fault = faults.raw(http(body))
    _, grown_mib, took_s = ask_in_subprocess(fake.url)
    assert grown_mib < 512
    assert took_s < PATIENCE_S


def ask_in_subprocess(url: str) -> tuple[str, int, float]:
    """Send a request from a subprocess; return the error message, the memory growth in MiB and the seconds it took."""
    result = subprocess.run(
        [sys.executable, "-c", MEMORY, url, QUESTION], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stderr == ""
    message, grown_kib, took_s = result.stdout.splitlines()
    return message, int(grown_kib) >> 10, float(took_s)


def test_a_closed_port_is_an_error(refusing_url: str) -> None:
    assert "Connection refused" in error_of(Jolokia(refusing_url), LONG_S)


def test_a_listener_that_does_not_accept_times_out() -> None:
    with full_listener() as port:
        assert "no complete response in time" in error_of(Jolokia(f"http://127.0.0.1:{port}/jolokia"), SHORT_S)


def test_the_addresses_of_a_name_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    with full_listener() as port:
        address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: 8 * [address])
        assert "no complete response in time" in error_of(Jolokia(f"http://many.example:{port}/jolokia"), SHORT_S)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 64 + ".example"])
def test_an_unknown_host_name_is_a_one_line_error(host: str) -> None:
    with pytest.raises(JolokiaError) as caught:
        Jolokia(f"http://{host}:8778/jolokia").post([QUESTION], LONG_S)
    assert is_one_line(str(caught.value))


@pytest.mark.parametrize("code", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"])
@pytest.mark.parametrize("port_of", ["another server", "itself"])
def test_a_redirect_is_not_followed(code: str, port_of: str, fake: FakeJolokia) -> None:
    other = FakeJolokia()
    target = other.url if port_of == "another server" else fake.url
    fake.fault = faults.status(code, f"Location: {target}")
    with closing(Jolokia(fake.url)) as jolokia:
        message = error_of(jolokia, LONG_S)
    other.close()
    assert f"HTTP {code[:3]}" in message
    assert target in message
    assert (fake.posts, other.connections) == (1, 0)


def test_a_redirect_to_a_very_long_url_has_a_short_message(fake: FakeJolokia) -> None:
    fake.fault = faults.status("302 Found", f"Location: http://{'x' * 50_000}/")
    with closing(Jolokia(fake.url)) as jolokia:
        assert "HTTP 302" in error_of(jolokia, LONG_S)


@pytest.mark.parametrize("greeting", [faults.raw(faults.SSH), faults.raw(faults.CQL), faults.close, faults.reset])
def test_a_server_that_sends_first_or_disconnects_is_an_error(greeting: Fault, fake: FakeJolokia) -> None:
    fake.greeting = greeting
    with closing(Jolokia(fake.url)) as jolokia:
        error_of(jolokia, LONG_S)
        fake.greeting = None
        assert read_count(jolokia) == PAST


@pytest.mark.parametrize(
    "greeting", [None, faults.hang, faults.stalled(b"\x16\x03\x03\x40\x00\x02"), faults.raw(b"no")]
)
def test_tls_to_a_port_without_tls_is_an_error_in_time(greeting: Fault | None, fake: FakeJolokia) -> None:
    fake.greeting = greeting
    with closing(Jolokia(fake.url.replace("http:", "https:"))) as jolokia:
        assert re.search("TLS|connection closed", error_of(jolokia, SHORT_S))


def test_an_idle_connection_that_was_closed_is_reopened(fake: FakeJolokia) -> None:
    with closing(Jolokia(fake.url)) as jolokia:
        for expected in range(1, 4):
            assert read_count(jolokia) == PAST
            assert fake.connections == expected
            fake.drop_connections()


@pytest.mark.parametrize("head", ["HTTP/1.1 200 OK\r\nConnection: close", "HTTP/1.0 200 OK"])
@pytest.mark.parametrize("length", [True, False], ids=["with a length", "without a length"])
def test_a_response_may_end_with_its_connection(head: str, length: bool, fake: FakeJolokia) -> None:
    fake.fault = faults.closing(head, with_length=length)
    with closing(Jolokia(fake.url)) as jolokia:
        assert [read_count(jolokia) for _ in range(3)] == 3 * [PAST]
    assert (fake.connections, fake.posts) == (3, 3)


@pytest.mark.parametrize("answer", [None, faults.with_length], ids=["in chunks", "with a length"])
def test_a_connection_is_reused(answer: Fault | None, fake: FakeJolokia) -> None:
    fake.fault = answer
    with closing(Jolokia(fake.url)) as jolokia:
        assert [read_count(jolokia) for _ in range(3)] == 3 * [PAST]
    assert (fake.connections, fake.posts) == (1, 3)


def test_a_request_is_retried_once_on_a_new_connection(fake: FakeJolokia) -> None:
    with closing(Jolokia(fake.url)) as jolokia:
        assert read_count(jolokia) == PAST
        fake.fault = faults.close
        error_of(jolokia, LONG_S)
    assert fake.posts == 3


def test_a_duplicate_response_is_not_matched_to_the_next_request(fake: FakeJolokia) -> None:
    with closing(Jolokia(fake.url)) as jolokia:
        sent = threading.Event()
        fake.fault = faults.twice(sent)
        assert read_count(jolokia) == PAST
        assert sent.wait(LONG_S)
        fake.fault = None
        fake.node.do_reads(5)
        assert read_count(jolokia) == PAST + 5


@contextmanager
def full_listener() -> Iterator[int]:
    """Yield a port with a full backlog, where attempts to connect neither succeed nor fail."""
    with socket.socket() as listener, ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


MEMORY = """
import sys, time
from contextlib import closing
from pathlib import Path
from collector.node.jolokia.client import Jolokia, JolokiaError

def peak_kib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

before, began_s = peak_kib(), time.monotonic()
try:
    with closing(Jolokia(sys.argv[1])) as jolokia:
        jolokia.post([sys.argv[2]], 1.0)
    print("answered")
except JolokiaError as error:
    print(error)
print(peak_kib() - before)
print(time.monotonic() - began_s)
"""
