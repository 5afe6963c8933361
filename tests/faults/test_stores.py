"""Stores that are down or slow, or refuse points: log messages, and complete delivery afterwards."""

import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from collector.model.snapshot import Identity, Sample
from exporters.sinks.parts.all_sinks import sink_modules, sink_of
from exporters.sinks.shipping import delivery, shipper
from exporters.sinks.sink import NodeTick, RefusedError, Sink, UnavailableError
from tests.collector.snapshots import BYTES
from tests.exporters.sinks.shipping.shipped import Node, drain, head, snapshot
from tests.faults.certificates import Authority, Certificate
from tests.faults.fake_store import Answer, FakeStore, black_hole, byte_by_byte, endless, hang_up, not_http, status

TIMEOUT_S = 0.4
PATIENCE_S = 60.0
SCHEMES = [scheme for module in sink_modules() for scheme in module.SCHEMES]
HTTPS_SCHEMES = [scheme for scheme in SCHEMES if scheme.endswith("+https")]


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "TIMEOUT_S", TIMEOUT_S)
    monkeypatch.setattr(delivery, "MAX_POINTS", 100)
    monkeypatch.setattr(shipper, "MAX_POINTS", 100)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    recorded = Node(tmp_path / "node")
    recorded.record(100)
    yield recorded
    recorded.journal.close()


def expected_lines(node: Node, url: str) -> list[bytes]:
    """Return the lines that are sent to a store that accepts everything."""
    with closing(sink_of(url)) as sink:
        points_sent: list[bytes] = []

        sink.send = lambda points, timeout_s: points_sent.extend(points)  # type: ignore[method-assign]
        original, node.store = node.store, sink  # type: ignore[assignment]
        drain(shipping := node.shipping(state_folder=None))
        shipping.close()
        node.store = original
    return points_sent


def some_points(sink: Sink[Any]) -> list[bytes]:
    """Return points that any store accepts."""
    raw = snapshot(1)
    sample = Sample("n", raw.tick, {BYTES: 1.0}, {})
    return sink.encode(NodeTick(head(), Identity(node="n"), raw, sample))


NGINX = b"""<html>\r
<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>\r
<body>\r
<center><h1>400 Bad Request</h1></center>\r
<center>The plain HTTP request was sent to HTTPS port</center>\r
<hr><center>nginx/1.22.1</center>\r
</body>\r
</html>\r
"""
NOT_THE_STORE = "the response is not from the store itself"
FAULTS: dict[str, tuple[Answer, str]] = {
    "nginx wants TLS": (status(400, body=NGINX), f"HTTP 400: {NOT_THE_STORE} (hint: check the URL): 400 The plain"),
    "Go wants TLS": (status(400, body=b"Client sent an HTTP request to an HTTPS server."), NOT_THE_STORE),
    "a gateway": (status(422, body=b'{"message": "no Route matched with those values"}'), NOT_THE_STORE),
    "another application": (status(400, body=b'{"error": "Bad Request", "status": 400}'), NOT_THE_STORE),
    "a web page": (status(200, body=b"<html><body>Welcome to nginx!</body></html>"), f"HTTP 200: {NOT_THE_STORE}"),
    "401": (status(401), "credentials missing or rejected"),
    "403": (status(403), "no permission to write"),
    "404": (status(404), "no such bucket"),
    "429": (status(429, "Retry-After: 7"), "too many requests"),
    "500": (status(500, body=b'{"message": "a panic"}'), "HTTP 500: a panic"),
    "503": (status(503, "Retry-After: Sun, 06 Nov 2094 08:49:37 GMT"), "HTTP 503"),
    "302": (status(302, "Location: http://127.0.62.3:1/"), "redirect not followed"),
    "black hole": (black_hole, "in time"),
    "byte by byte": (byte_by_byte, "in time"),
    "endless": (endless, "HTTP 500"),
    "hang up": (hang_up, "without a response"),
    "nonsense": (not_http, "not an HTTP response"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_everything_arrives_once_and_in_order(node: Node, fault: str) -> None:
    answer, message = FAULTS[fault]
    with closing(FakeStore(answer, status(204), answer)) as store:
        # The scripted 204 accepts points without adding them to `accepted_lines`; `first` skips these points.
        url = f"influxdb+http://127.0.62.3:{store.port}/b"
        expected = expected_lines(node, url)
        node.store = sink_of(url)  # type: ignore[assignment]
        shipping = node.shipping()
        shipping.step()
        first = len(expected) - len(expected[shipping.health().points :])
        drain(shipping)
        assert store.accepted_lines == expected[first:]
        health = shipping.health()
        assert (health.up, health.failures, health.points) == (True, 2, len(expected))
        assert any(message in line for line in node.messages), node.messages
        if fault == "429":
            assert node.time.waits[0] == 7.5
        if fault == "503":
            assert node.time.waits[0] == 300.5
        shipping.close()


def test_a_store_that_is_down_is_unavailable(node: Node) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.62.3", 0))
        port = bound.getsockname()[1]
        for scheme in (scheme for scheme in SCHEMES if not scheme.endswith("+https")):
            with (
                closing(sink_of(f"{scheme}://127.0.62.3:{port}/x")) as sink,
                pytest.raises(UnavailableError, match="refused"),
            ):
                sink.send(some_points(sink), 1.0)


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme.endswith("+http")])
def test_a_request_ends_at_its_deadline_however_slow_the_response_is(scheme: str) -> None:
    with closing(FakeStore(byte_by_byte)) as store, closing(sink_of(f"{scheme}://127.0.62.3:{store.port}/x")) as sink:
        began_s = time.monotonic()
        with pytest.raises(UnavailableError, match="in time"):
            sink.send(some_points(sink), 1.0)
        # The complete response would take minutes.
        assert time.monotonic() - began_s < 60


@pytest.mark.parametrize("body", [b'{"error":"Request Entity Too Large"}', b"<h1>413 Request Entity Too Large</h1>"])
def test_requests_that_are_too_large_are_split(node: Node, body: bytes) -> None:
    with closing(FakeStore(status(413, body=body), status(413, body=body))) as store:
        url = f"influxdb+http://127.0.62.3:{store.port}/b"
        node.store = sink_of(url)  # type: ignore[assignment]
        shipping = node.shipping()
        drain(shipping)
        assert sorted(store.accepted_lines) == sorted(expected_lines(node, url))
        assert shipping.health().refused_points == 0
        shipping.close()


def test_refusals_of_some_points_differ_from_refusals_of_all() -> None:
    long = b"x" * 5000
    bodies = [
        (400, b'{"error":"partial write: points beyond retention policy dropped=2"}', True),
        (400, b'{"error":"partial write: field type conflict dropped=1"}', False),
        (400, b'{"code":"invalid","message":"unable to parse \'' + long + b'\'","line":1}', False),
        (422, b'{"code":"unprocessable entity","message":"partial write: dropped=2"}', True),
        (400, b'remoteAddr: "127.0.0.1:41686"; requestURI: /api/v2/write?a=b; cannot read data: ' + long, False),
    ]
    answers = [status(code, body=body) for code, body, _ in bodies]
    with closing(FakeStore(*answers)) as store, closing(sink_of(f"influxdb+http://127.0.62.3:{store.port}/b")) as sink:
        for _, _, expected in bodies:
            with pytest.raises(RefusedError) as caught:
                sink.send([b"a b=1 1", b"a b=1 2"], 5.0)
            assert caught.value.all_points == expected
            assert len(str(caught.value)) < 300


def test_partial_blueflood_errors_are_refusals() -> None:
    body = b'{"errors":[{"tenantId":"t","metricName":"a","source":null,"message":"in the future","timestamp":1}]}'
    with (
        closing(FakeStore(status(207, body=body), status(207), status(202), status(200))) as store,
        closing(sink_of(f"blueflood+http://127.0.62.3:{store.port}/t")) as sink,
    ):
        with pytest.raises(RefusedError, match="in the future"):
            sink.send([b"{}"], 5.0)
        with pytest.raises(UnavailableError, match="not from the store"):
            sink.send([b"{}"], 5.0)
        with pytest.raises(UnavailableError, match="202"):
            sink.send([b"{}"], 5.0)
        sink.send([b"{}"], 5.0)


def test_secrets_are_masked_in_messages(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("user:tops3cret\n")
    token.chmod(0o600)
    with (
        closing(FakeStore(status(401, body=b'{"message": "no user:tops3cret here"}'))) as store,
        closing(sink_of(f"influxdb+http://127.0.62.3:{store.port}/b?token_file={token}")) as sink,
        pytest.raises(UnavailableError) as caught,
    ):
        sink.send([b"a b=1 1"], 5.0)
    assert "tops3cret" not in str(caught.value)
    assert "***" in str(caught.value)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def server_context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    return context


def test_only_valid_certificates_of_a_trusted_authority_are_accepted(authority: Authority) -> None:
    right = authority.sign("right", "subjectAltName=IP:127.0.62.3")
    wrong = authority.sign("wrong", "subjectAltName=DNS:elsewhere.example")
    expired = authority.sign("expired", "subjectAltName=IP:127.0.62.3", days=-1)
    cases = [
        (right, True, ""),
        (right, False, "not signed by a trusted authority"),
        (wrong, True, "not valid for 127.0.62.3"),
        (expired, True, "expired"),
    ]
    for certificate, is_trusted, message in cases:
        for scheme in HTTPS_SCHEMES:
            ca = f"?ca_file={authority.file}" if is_trusted else ""
            with (
                closing(FakeStore(tls=server_context(certificate))) as store,
                closing(sink_of(f"{scheme}://127.0.62.3:{store.port}/b{ca}")) as sink,
            ):
                points = some_points(sink)
                if not message:
                    sink.send(points, 5.0)
                    sink.send(points, 5.0)
                    # Remote write needs another request to find out which version the store accepts.
                    assert store.requests == (3 if scheme.startswith("prometheus") else 2)
                    continue
                with pytest.raises(UnavailableError, match=message):
                    sink.send(some_points(sink), 5.0)
    with (
        closing(FakeStore()) as store,
        closing(sink_of(f"influxdb+https://127.0.62.3:{store.port}/b")) as sink,
        pytest.raises(UnavailableError, match=r"TLS|in time"),
    ):
        sink.send([b"a b=1 1"], 1.0)


@pytest.mark.parametrize("scheme", HTTPS_SCHEMES)
def test_advice_on_tls_failures_considers_the_given_certificates(
    scheme: str, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other")
    client = other.sign("client", "extendedKeyUsage=clientAuth")
    context = server_context(authority.sign("server", "subjectAltName=IP:127.0.62.3"))
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    # With TLS 1.3, the client may notice that the connection is closed before it reads the reason.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    certificate = f"ca_file={authority.file}&cert_file={client.file}&key_file={client.key}"
    rejected = f"the server may have rejected the client certificate {client.file} (hint: check cert_file)"
    messages = {
        f"ca_file={authority.file}": "may require a client certificate (hint: use cert_file=PATH and key_file=PATH)",
        certificate: rejected,
        f"ca_file={other.file}": f"the server's certificate is not signed by an authority in {other.file}",
    }
    for parameters, message in messages.items():
        with (
            closing(FakeStore(tls=context)) as store,
            closing(sink_of(f"{scheme}://127.0.62.3:{store.port}/b?{parameters}")) as sink,
            pytest.raises(UnavailableError, match=re.escape(message)),
        ):
            sink.send(some_points(sink), 5.0)


def test_a_graphite_batch_is_delivered_once_the_store_closes_the_connection() -> None:
    received: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        stream, _ = listener.accept()
        with stream:
            while data := stream.recv(100):
                received.append(data)
        stream, _ = listener.accept()
        with stream:
            black_hole(stream)

    with socket.create_server(("127.0.62.3", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        with closing(sink_of(f"graphite://127.0.62.3:{listener.getsockname()[1]}/p")) as sink:
            sink.send([b"a 1 1", b"b 2 2"], 5.0)
            assert b"".join(received) == b"a 1 1\nb 2 2\n"
            # On the second connection, the store reads a single byte.
            with pytest.raises(UnavailableError, match=r"in time|reset"):
                sink.send([b"x" * 1000] * 100000, 0.5)


def casstat(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli", "ship", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_ship_sends_a_recording_and_resumes_from_its_state_file(node: Node, tmp_path: Path) -> None:
    node.journal.close()
    with closing(FakeStore()) as store, closing(FakeStore(*[status(500)] * 1000)) as broken:
        url = f"influxdb+http://127.0.62.3:{store.port}/b"
        expected = expected_lines(node, url)
        result = casstat(node.folder, "--to", url)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == f"influxdb+http://127.0.62.3:{store.port}/b: shipped 99 ticks, {len(expected)} points\n"
        assert store.accepted_lines == expected
        assert [file.name for file in node.folder.iterdir() if not file.name.startswith(".")] == [
            file.name for file in node.folder.glob("*.zst")
        ]
        store.accepted_lines.clear()
        state = tmp_path / "state"
        times = ["--from", "1795000010", "--until", "1795000019", "--state", str(state)]
        result = casstat(node.folder, "--to", url, *times)
        assert "shipped 10 ticks" in result.stdout
        assert [line for line in expected if re.search(rb" 17950000(1\d)000000000$", line)] == store.accepted_lines
        # The checkpoint is at the end of the recording, so there is nothing left to ship.
        assert "shipped 0 ticks" in casstat(node.folder, "--to", url, "--state", state).stdout
        result = casstat(
            node.folder, "--to", f"influxdb+http://127.0.62.3:{broken.port}/b", "--to", url, "--patience", "1"
        )
        assert result.returncode == 1
        assert "accepted nothing for 1 s: HTTP 500" in result.stderr
        assert "Traceback" not in result.stderr
        assert f"{store.port}/b: shipped 99 ticks" in result.stdout
    assert casstat(tmp_path / "nothing", "--to", url).returncode == 1
    assert casstat(node.folder, "--to", "influx://x").returncode == 2
    node.begin()


def test_refused_points_give_exit_code_1(node: Node) -> None:
    body = b'{"error":"partial write: field type conflict dropped=1"}'
    with closing(FakeStore(status(400, body=body), status(204), *[status(400, body=body)] * 9)) as store:
        result = casstat(node.folder, "--to", f"influxdb+http://127.0.62.3:{store.port}/b")
    assert result.returncode == 1
    assert "1 point refused" in result.stdout
    assert "refused" in result.stderr


def test_a_store_that_refuses_every_point_gives_exit_code_1_and_loses_nothing(node: Node, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with closing(FakeStore()) as store:
        url = f"influxdb+http://127.0.62.3:{store.port}/b"
        expected = expected_lines(node, url)
        store.always = status(400, body=b'{"error":"partial write: field type conflict dropped=0"}')
        result = casstat(node.folder, "--to", url, "--state", state, "--patience", "1")
        assert result.returncode == 1
        assert "accepted nothing for 1 s: it refuses every point: HTTP 400: partial write" in result.stderr
        store.always = None
        assert casstat(node.folder, "--to", url, "--state", state).returncode == 0
        assert store.accepted_lines == expected
