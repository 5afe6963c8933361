"""Jolokia's access control, TLS and proxies: errors have hints and never contain secrets."""

import json
import re
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from cli.parameters.access_options import JOLOKIA, hint_for
from collector.http.access import AccessError
from collector.node.jolokia.client import Jolokia, JolokiaAccess, JolokiaError
from tests.faults import faults
from tests.faults.certificates import Authority, Certificate
from tests.faults.fake_jolokia import FakeJolokia, Fault, http
from tests.faults.fake_node import PAST, FakeNode, Json, error
from tests.faults.forwarder import Forwarder
from tests.faults.program import is_one_line, within

READS = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
QUESTION = json.dumps({"type": "read", "mbean": READS, "attribute": "Count"})
SEARCH = json.dumps({"type": "search", "mbean": "org.apache.cassandra.metrics:type=ClientRequest,scope=*,name=Latency"})
SHORT_S, LONG_S = 0.2, 10.0
SECRET, OTHER_SECRET = "hunter2", "correct horse"
TOKEN = b64encode(f"me:{SECRET}".encode()).decode()


def hinted(**fields: Any) -> JolokiaAccess:
    return JolokiaAccess(**fields, hint=hint_for(JOLOKIA))


ME = hinted(user="me", password=SECRET)


def error_of(jolokia: Jolokia, timeout_s: float = LONG_S) -> str:
    """Return the message of the error that `post` raises; it must be one line without secrets."""
    with closing(jolokia), within(timeout_s), pytest.raises(JolokiaError) as caught:
        jolokia.post([QUESTION], timeout_s)
    message = str(caught.value)
    assert message.startswith(jolokia.url)
    assert is_one_line(message)
    assert not any(secret in message for secret in (SECRET, OTHER_SECRET, TOKEN))
    return message


def read_count(jolokia: Jolokia) -> Any:
    (answer,) = jolokia.post([QUESTION], LONG_S)
    return answer.get("value")


@pytest.fixture
def forwarder(fake: FakeJolokia) -> Iterator[Forwarder]:
    started = Forwarder(fake.port)
    yield started
    started.stop()


def test_every_post_sends_configured_credentials_and_no_others(fake: FakeJolokia, forwarder: Forwarder) -> None:
    with closing(Jolokia(forwarder.url, ME)) as jolokia:
        assert [read_count(jolokia), read_count(jolokia)] == [PAST, PAST]
    assert forwarder.received.count(f"Authorization: Basic {TOKEN}\r\n".encode()) == fake.posts == 2
    with closing(Jolokia(forwarder.url)) as jolokia:
        assert read_count(jolokia) == PAST
    assert forwarder.received.count(b"Authorization") == 2


@pytest.mark.parametrize(
    ("status", "access", "words"),
    [
        (
            "401 Unauthorized",
            hinted(),
            r"credentials required \(hint: use --jolokia-user and",
        ),
        (
            "401 Unauthorized",
            ME,
            r"credentials of user 'me' rejected \(hint: check --jolokia-user and",
        ),
        ("403 Forbidden", hinted(), "policy denies this host or user$"),
        ("400 Bad Request", hinted(), "if the server speaks TLS, use an https:// URL"),
    ],
)
def test_an_http_error_has_a_hint(fake: FakeJolokia, status: str, access: JolokiaAccess, words: str) -> None:
    fake.fault = faults.status(status)
    assert re.search(words, error_of(Jolokia(fake.url, access)))


def test_a_policy_error_is_attributed_to_the_policy(fake: FakeJolokia) -> None:
    fake.fault = faults.value(error(403, "java.lang.Exception", "No access from client 127.0.0.1 allowed"))
    assert "denied by Jolokia's policy: java.lang.Exception : No access from client 127.0.0.1" in error_of(
        Jolokia(fake.url)
    )


REFLECTING: dict[str, Fault] = {
    "a redirect": faults.status("302 Found", f"Location: http://elsewhere/?{TOKEN}&{SECRET}"),
    "a reason": faults.status(f"500 {SECRET} {TOKEN} {OTHER_SECRET}"),
    "an error": faults.value({"error": f"{SECRET} {TOKEN} {OTHER_SECRET}", "status": 500}),
    "a target's error": faults.value([{}, {"status": 500, "error": f"{SECRET} {OTHER_SECRET}"}, {}]),
}


@pytest.mark.parametrize("name", REFLECTING)
def test_secrets_in_a_response_are_masked_in_messages(name: str, fake: FakeJolokia) -> None:
    fake.fault = REFLECTING[name]
    access = replace(ME, target="10.0.0.7:7199", target_user="you", target_password=OTHER_SECRET)
    assert "***" in error_of(Jolokia(fake.url, access))


def test_representations_contain_no_secret(fake: FakeJolokia) -> None:
    access = replace(ME, target="10.0.0.7:7199", target_user="you", target_password=OTHER_SECRET)
    jolokia = Jolokia(fake.url, access)
    representations = f"{access!r} {access} {jolokia!r} {jolokia.url}"
    assert not any(secret in representations for secret in (SECRET, OTHER_SECRET, TOKEN))


# TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Certificate:
    return authority.sign("server", "subjectAltName=IP:127.0.0.1")


Serve = Callable[..., Forwarder]


@pytest.fixture
def serve(fake: FakeJolokia) -> Iterator[Serve]:
    """Return a function that starts a TLS forwarder, which requires client certificates if `clients` is given."""
    forwarders: list[Forwarder] = []

    def start(certificate: Certificate, clients: Path | None = None) -> Forwarder:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.file, certificate.key)
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        forwarders.append(Forwarder(fake.port, context))
        return forwarders[-1]

    yield start
    for forwarder in forwarders:
        forwarder.stop()


def test_a_server_signed_by_the_given_authority_is_trusted_and_the_connection_reused(
    serve: Serve, authority: Authority, server: Certificate, fake: FakeJolokia
) -> None:
    forwarder = serve(server)
    with closing(Jolokia(forwarder.url, replace(ME, ca=authority.file))) as jolokia:
        assert [read_count(jolokia) for _ in range(4)] == 4 * [PAST]
    assert (forwarder.connections, fake.posts) == (1, 4)


def test_a_server_certificate_can_be_its_own_authority(serve: Serve, server: Certificate) -> None:
    with closing(Jolokia(serve(server).url, hinted(ca=server.file))) as jolokia:
        assert read_count(jolokia) == PAST


def test_a_certificate_from_an_unknown_authority_is_rejected(
    serve: Serve, stranger: Authority, server: Certificate
) -> None:
    url = serve(server).url
    assert "not signed by a trusted authority (hint: specify the CA certificate with --jolokia-ca)" in error_of(
        Jolokia(url, hinted())
    )
    message = error_of(Jolokia(url, hinted(ca=stranger.file)))
    assert f"not signed by an authority in {stranger.file}" in message
    assert "--jolokia-ca" in message


def test_a_certificate_for_another_host_is_rejected(serve: Serve, authority: Authority) -> None:
    forwarder = serve(authority.sign("other", "subjectAltName=IP:127.0.0.2,DNS:node7.example"))
    assert "certificate is not valid for 127.0.0.1" in error_of(Jolokia(forwarder.url, hinted(ca=authority.file)))


def test_an_expired_certificate_is_rejected(serve: Serve, authority: Authority) -> None:
    forwarder = serve(authority.sign("old", "subjectAltName=IP:127.0.0.1", days=-1))
    assert "certificate has expired" in error_of(Jolokia(forwarder.url, hinted(ca=authority.file)))


def test_a_client_certificate_is_sent_if_required(serve: Serve, authority: Authority, server: Certificate) -> None:
    forwarder = serve(server, clients=authority.file)
    mine = authority.sign("client", "extendedKeyUsage=clientAuth")
    access = hinted(ca=authority.file, certificate=mine.file, key=mine.key)
    with closing(Jolokia(forwarder.url, access)) as jolokia:
        assert read_count(jolokia) == PAST
    both = mine.file.with_suffix(".both")
    both.write_text(mine.file.read_text() + mine.key.read_text())
    with closing(Jolokia(forwarder.url, hinted(ca=authority.file, certificate=both))) as jolokia:
        assert read_count(jolokia) == PAST


def test_a_missing_or_rejected_client_certificate_has_a_hint(
    serve: Serve, authority: Authority, stranger: Authority, server: Certificate
) -> None:
    forwarder = serve(server, clients=authority.file)
    required = error_of(Jolokia(forwarder.url, hinted(ca=authority.file)))
    assert "the server may require a client certificate" in required
    assert "(hint: use --jolokia-cert and --jolokia-key)" in required
    strange = stranger.sign("client", "extendedKeyUsage=clientAuth")
    rejected = error_of(
        Jolokia(forwarder.url, hinted(ca=authority.file, certificate=strange.file, key=strange.key)),
    )
    assert f"the server may have rejected the client certificate {strange.file}" in rejected
    assert "(hint: check --jolokia-cert)" in rejected


def test_an_unusable_key_is_an_error_without_a_password_prompt(authority: Authority, stranger: Authority) -> None:
    mine, other = (
        authority.sign("mine", "extendedKeyUsage=clientAuth"),
        stranger.sign("other", "keyUsage=digitalSignature"),
    )
    for key, words in [
        (other.key, "the key does not match the certificate"),
        (mine.encrypted_key(), "the key is encrypted"),
    ]:
        with pytest.raises(AccessError, match=words) as caught:
            Jolokia("https://node7/jolokia", hinted(certificate=mine.file, key=key))
        assert str(caught.value).startswith(str(key))
        assert is_one_line(str(caught.value))
    with pytest.raises(AccessError, match="does not contain a certificate and its key") as caught:
        Jolokia("https://node7/jolokia", hinted(certificate=mine.file))
    assert caught.value.missing == "key"


def test_plain_http_to_a_tls_port_has_a_hint(serve: Serve, server: Certificate) -> None:
    url = serve(server).url.replace("https:", "http:")
    assert "use an https:// URL" in error_of(Jolokia(url, hinted()))


@pytest.mark.parametrize("reply", [http(b"", "400 Bad Request"), b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_tls_to_a_port_without_tls_has_a_hint(reply: bytes, fake: FakeJolokia) -> None:
    fake.greeting = faults.raw(reply)
    assert "the server does not speak TLS (hint: use an http:// URL)" in error_of(
        Jolokia(fake.url.replace("http:", "https:"), hinted())
    )


def test_a_tls_handshake_without_a_reply_times_out_with_a_hint(fake: FakeJolokia) -> None:
    # Java's HTTP server behaves like this: it takes the handshake for a request line, and waits for the line's end.
    fake.greeting = faults.hang
    message = error_of(Jolokia(fake.url.replace("http:", "https:"), hinted()), SHORT_S)
    assert "TLS handshake timed out (hint: if the server does not speak TLS, use an http:// URL)" in message


def test_an_endless_tls_handshake_ends_in_time(fake: FakeJolokia) -> None:
    fake.greeting = faults.endless(b"\x16\x03\x03\x3f\xff\x02", b"\0")
    message = error_of(Jolokia(fake.url.replace("http:", "https:"), hinted()), SHORT_S)
    # The client rejects the malformed TLS record once it is complete; on a slow machine, it times out first.
    assert "TLS handshake timed out" in message or "no TLS connection" in message


def test_connecting_and_the_handshake_share_one_deadline(
    monkeypatch: pytest.MonkeyPatch, fake: FakeJolokia, server: Certificate
) -> None:
    fake.greeting = faults.hang
    real = socket.socket.connect

    def slow(stream: socket.socket, address: Any) -> None:
        threading.Event().wait(0.8)
        real(stream, address)

    def observed(stream: ssl.SSLSocket) -> None:
        allowed_s.append(stream.gettimeout() or inf)
        handshake(stream)

    allowed_s: list[float] = []
    handshake = ssl.SSLSocket.do_handshake
    monkeypatch.setattr(socket.socket, "connect", slow)
    monkeypatch.setattr(ssl.SSLSocket, "do_handshake", observed)
    with pytest.raises(JolokiaError):
        Jolokia(fake.url.replace("http:", "https:"), hinted()).post([QUESTION], 1.0)
    # On a slow machine, connecting may take all of the time.
    assert all(seconds <= 0.21 for seconds in allowed_s)


# Proxies


class Proxy:
    """A Jolokia proxy: `node` answers requests with a target, and the proxy's own JVM answers all others."""

    def __init__(self, server: FakeJolokia, version: int) -> None:
        self.node, self.own, self.version = server.node, FakeNode(), version
        self.own.restart()
        self.targets: list[Json] = []
        server.node = self  # type: ignore[assignment]

    def answer(self, request: Json) -> Json:
        target = request.pop("target", None)
        if target is None:
            return self.own.answer(request)
        self.targets.append(target)
        answer = self.node.answer(request)
        if self.version == 2 and request["type"] == "search" and answer["status"] == 200:
            marked = [f"proxy@{name}" for name in answer["value"]]
            return {**answer, "value": marked + self.own.answer(request)["value"]}
        return answer


PROXIED = hinted(target="10.0.0.7:7199", target_user="you", target_password=OTHER_SECRET)


@pytest.mark.parametrize("version", [1, 2])
def test_a_proxy_reads_only_the_target_and_its_names(version: int, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, version)
    proxy.node.do_reads(5)
    proxy.own.create_table("ks", "t")
    table = json.dumps({"type": "search", "mbean": "org.apache.cassandra.metrics:type=Table,keyspace=*,scope=*,name=*"})
    with closing(Jolokia(fake.url, PROXIED)) as jolokia:
        read, names, no_tables = jolokia.post([QUESTION, SEARCH, table], LONG_S)
    assert read["value"] == PAST + 5
    assert sorted(names["value"]) == sorted(proxy.node.answer(json.loads(SEARCH))["value"])
    assert no_tables["value"] == []
    url = "service:jmx:rmi:///jndi/rmi://10.0.0.7:7199/jmxrmi"
    assert set(map(json.dumps, proxy.targets)) == {json.dumps({"url": url, "user": "you", "password": OTHER_SECRET})}


def test_errors_from_the_target_are_passed_through(fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 2)
    proxy.node.override = lambda request, answer: (
        error(403, "java.lang.Exception", "no") if "ClientRequest" in request["mbean"] else answer
    )
    with closing(Jolokia(fake.url, PROXIED)) as jolokia:
        read, names = jolokia.post([QUESTION, SEARCH], LONG_S)
    assert (read["status"], names["status"]) == (403, 403)


def test_responses_from_the_proxys_own_jvm_are_rejected(fake: FakeJolokia) -> None:
    fake.node.override = lambda request, answer: {**answer, "request": request}
    assert "not a proxy: it reports its own JVM" in error_of(Jolokia(fake.url, PROXIED))


@pytest.mark.parametrize(
    ("target_error", "words"),
    [
        ("java.lang.Exception : Authentication failed! Invalid username or password", "use --jolokia-target-user"),
        (
            "java.io.IOException : Failed to retrieve RMIServer stub:\nConnection refused",
            r"refused \(hint: check --jolokia-target\)",
        ),
        ("java.lang.Exception : Target URL x is not allowed by configuration", "jsr160ProxyAllowedTargets"),
    ],
)
def test_an_unreadable_target_has_a_hint(target_error: str, words: str, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 2)
    proxy.node.override = lambda *_: {"status": 500, "error": target_error}
    message = error_of(Jolokia(fake.url, PROXIED))
    assert "cannot read service:jmx:rmi:///jndi/rmi://10.0.0.7:7199/jmxrmi" in message
    assert re.search(words, message)


@pytest.mark.parametrize("value", [{"Name": "ERROR: forbidden", "StartTime": "ERROR: forbidden"}, None, [], {}, 7])
def test_a_proxy_that_does_not_identify_the_target_is_rejected(value: Any, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 2)
    proxy.node.override = lambda _, answer: {**answer, "value": value}
    assert "cannot identify the JVM behind the proxy" in error_of(Jolokia(fake.url, PROXIED))


@pytest.mark.parametrize("value", [None, 7, {}, "proxy@", [7, None], [["proxy@x"]]])
def test_malformed_names_do_not_affect_other_responses(value: Any, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 1)
    proxy.node.override = lambda request, answer: {**answer, "value": value} if request["type"] == "search" else answer
    with closing(Jolokia(fake.url, PROXIED)) as jolokia:
        read, _ = jolokia.post([QUESTION, SEARCH], LONG_S)
    assert read["value"] == PAST
