"""Jolokias that do not let everybody in, and proxies: each refusal says what to do, and never a secret."""

import json
import re
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.parameters.access_advice import JOLOKIA, hint_for
from collector.http.access import AccessError
from collector.jolokia.client import Jolokia, JolokiaError
from collector.jolokia.jolokia_access import JolokiaAccess
from tests.faults import faults
from tests.faults.certificates import Authority, Certificate
from tests.faults.fake_jolokia import FakeJolokia, Fault, http
from tests.faults.fake_node import PAST, FakeNode, Json, error
from tests.faults.front import Front
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


def refused(jolokia: Jolokia, timeout_s: float = LONG_S) -> str:
    """Return what ask says when it cannot answer: one line, and no secret in it."""
    with closing(jolokia), within(timeout_s), pytest.raises(JolokiaError) as caught:
        jolokia.ask([QUESTION], timeout_s)
    message = str(caught.value)
    assert message.startswith(jolokia.url)
    assert is_one_line(message)
    assert not any(secret in message for secret in (SECRET, OTHER_SECRET, TOKEN))
    return message


def asked(jolokia: Jolokia) -> Any:
    (answer,) = jolokia.ask([QUESTION], LONG_S)
    return answer.get("value")


@pytest.fixture
def front(fake: FakeJolokia) -> Iterator[Front]:
    standing = Front(fake.port)
    yield standing
    standing.stop()


def test_each_post_tells_the_user_and_password_and_nothing_does_without(fake: FakeJolokia, front: Front) -> None:
    with closing(Jolokia(front.url, ME)) as jolokia:
        assert [asked(jolokia), asked(jolokia)] == [PAST, PAST]
    assert front.asked.count(f"Authorization: Basic {TOKEN}\r\n".encode()) == fake.posts == 2
    with closing(Jolokia(front.url)) as jolokia:
        assert asked(jolokia) == PAST
    assert front.asked.count(b"Authorization") == 2


@pytest.mark.parametrize(
    ("status", "access", "words"),
    [
        (
            "401 Unauthorized",
            hinted(),
            r"credentials required \(hint: give --jolokia-user and",
        ),
        (
            "401 Unauthorized",
            ME,
            r"credentials of user 'me' rejected \(hint: check --jolokia-user and",
        ),
        ("403 Forbidden", hinted(), "policy denies this host or user$"),
        ("400 Bad Request", hinted(), "if the server speaks TLS, give an https:// URL"),
    ],
)
def test_a_refusal_as_a_whole_says_what_to_do(
    fake: FakeJolokia, status: str, access: JolokiaAccess, words: str
) -> None:
    fake.fault = faults.status(status)
    assert re.search(words, refused(Jolokia(fake.url, access)))


def test_a_policy_that_refuses_this_host_is_told_as_such(fake: FakeJolokia) -> None:
    fake.fault = faults.value(error(403, "java.lang.Exception", "No access from client 127.0.0.1 allowed"))
    assert "refused by Jolokia's policy: java.lang.Exception : No access from client 127.0.0.1" in refused(
        Jolokia(fake.url)
    )


REFLECTING: dict[str, Fault] = {
    "a redirect": faults.status("302 Found", f"Location: http://elsewhere/?{TOKEN}&{SECRET}"),
    "a reason": faults.status(f"500 {SECRET} {TOKEN} {OTHER_SECRET}"),
    "an error": faults.value({"error": f"{SECRET} {TOKEN} {OTHER_SECRET}", "status": 500}),
    "a target's error": faults.value([{}, {"status": 500, "error": f"{SECRET} {OTHER_SECRET}"}, {}]),
}


@pytest.mark.parametrize("name", REFLECTING)
def test_a_server_that_repeats_secrets_does_not_bring_them_into_messages(name: str, fake: FakeJolokia) -> None:
    fake.fault = REFLECTING[name]
    access = replace(ME, target="10.0.0.7:7199", target_user="you", target_password=OTHER_SECRET)
    assert "***" in refused(Jolokia(fake.url, access))


def test_nothing_that_can_be_printed_holds_a_secret(fake: FakeJolokia) -> None:
    access = replace(ME, target="10.0.0.7:7199", target_user="you", target_password=OTHER_SECRET)
    jolokia = Jolokia(fake.url, access)
    shown = f"{access!r} {access} {jolokia!r} {jolokia.url}"
    assert not any(secret in shown for secret in (SECRET, OTHER_SECRET, TOKEN))


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


Serve = Callable[..., Front]


@pytest.fixture
def serve(fake: FakeJolokia) -> Iterator[Serve]:
    """Stand before the fake with a certificate, and perhaps an authority that must have signed the client's."""
    fronts = []

    def standing(certificate: Certificate, clients: Path | None = None) -> Front:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.file, certificate.key)
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        fronts.append(Front(fake.port, context))
        return fronts[-1]

    yield standing
    for front in fronts:
        front.stop()


def test_with_its_authority_a_server_is_trusted_and_the_connection_kept(
    serve: Serve, authority: Authority, server: Certificate, fake: FakeJolokia
) -> None:
    front = serve(server)
    with closing(Jolokia(front.url, replace(ME, ca=authority.file))) as jolokia:
        assert [asked(jolokia) for _ in range(4)] == 4 * [PAST]
    assert (front.connections, fake.posts) == (1, 4)


def test_a_servers_own_certificate_may_be_trusted_itself(serve: Serve, server: Certificate) -> None:
    with closing(Jolokia(serve(server).url, hinted(ca=server.file))) as jolokia:
        assert asked(jolokia) == PAST


def test_an_unknown_authority_is_refused(serve: Serve, stranger: Authority, server: Certificate) -> None:
    url = serve(server).url
    assert "not signed by a trusted authority (hint: give the authority's certificate with --jolokia-ca)" in refused(
        Jolokia(url, hinted())
    )
    told = refused(Jolokia(url, hinted(ca=stranger.file)))
    assert f"not signed by {stranger.file}" in told
    assert "--jolokia-ca" in told


def test_a_certificate_of_another_host_is_refused(serve: Serve, authority: Authority) -> None:
    front = serve(authority.sign("other", "subjectAltName=IP:127.0.0.2,DNS:node7.example"))
    assert "certificate is not valid for 127.0.0.1" in refused(Jolokia(front.url, hinted(ca=authority.file)))


def test_a_certificate_past_its_time_is_refused(serve: Serve, authority: Authority) -> None:
    front = serve(authority.sign("old", "subjectAltName=IP:127.0.0.1", days=-1))
    assert "certificate has expired" in refused(Jolokia(front.url, hinted(ca=authority.file)))


def test_a_server_that_wants_a_certificate_gets_it(serve: Serve, authority: Authority, server: Certificate) -> None:
    front = serve(server, clients=authority.file)
    mine = authority.sign("client", "extendedKeyUsage=clientAuth")
    access = hinted(ca=authority.file, certificate=mine.file, key=mine.key)
    with closing(Jolokia(front.url, access)) as jolokia:
        assert asked(jolokia) == PAST
    both = mine.file.with_suffix(".both")
    both.write_text(mine.file.read_text() + mine.key.read_text())
    with closing(Jolokia(front.url, hinted(ca=authority.file, certificate=both))) as jolokia:
        assert asked(jolokia) == PAST


def test_a_server_that_wants_a_certificate_says_so(
    serve: Serve, authority: Authority, stranger: Authority, server: Certificate
) -> None:
    front = serve(server, clients=authority.file)
    required = refused(Jolokia(front.url, hinted(ca=authority.file)))
    assert "the server may require a client certificate" in required
    assert "(hint: give --jolokia-cert and --jolokia-key)" in required
    strange = stranger.sign("client", "extendedKeyUsage=clientAuth")
    rejected = refused(
        Jolokia(front.url, hinted(ca=authority.file, certificate=strange.file, key=strange.key)),
    )
    assert f"the server may reject the client certificate {strange.file}" in rejected
    assert "(hint: check --jolokia-cert)" in rejected


def test_a_key_that_cannot_be_used_is_refused_without_asking_for_its_password(
    authority: Authority, stranger: Authority
) -> None:
    mine, other = (
        authority.sign("mine", "extendedKeyUsage=clientAuth"),
        stranger.sign("other", "keyUsage=digitalSignature"),
    )
    for key, words in [(other.key, "not the key of the certificate"), (mine.encrypted_key(), "the key is encrypted")]:
        with pytest.raises(AccessError, match=words) as caught:
            Jolokia("https://node7/jolokia", hinted(certificate=mine.file, key=key))
        assert str(caught.value).startswith(str(key))
        assert is_one_line(str(caught.value))
    with pytest.raises(AccessError, match="not a certificate with its key") as caught:
        Jolokia("https://node7/jolokia", hinted(certificate=mine.file))
    assert caught.value.missing == "key"


def test_http_where_tls_is_spoken_says_so(serve: Serve, server: Certificate) -> None:
    url = serve(server).url.replace("https:", "http:")
    assert "give an https:// URL" in refused(Jolokia(url, hinted()))


@pytest.mark.parametrize("behind", [http(b"", "400 Bad Request"), b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_tls_where_something_else_is_spoken_says_so(behind: bytes, fake: FakeJolokia) -> None:
    fake.greeting = faults.raw(behind)
    assert "the server speaks no TLS (hint: give an http:// URL)" in refused(
        Jolokia(fake.url.replace("http:", "https:"), hinted())
    )


def test_tls_where_nobody_answers_it_ends_in_time_and_says_so(fake: FakeJolokia) -> None:
    # So does Java's HTTP server: it waits for the end of a line.
    fake.greeting = faults.hang
    told = refused(Jolokia(fake.url.replace("http:", "https:"), hinted()), SHORT_S)
    assert "no TLS handshake in time (hint: if the server speaks no TLS, give an http:// URL)" in told


def test_tls_that_trickles_ends_in_time(fake: FakeJolokia) -> None:
    fake.greeting = faults.endless(b"\x16\x03\x03\x3f\xff\x02", b"\0")
    refused(Jolokia(fake.url.replace("http:", "https:"), hinted()), SHORT_S)


def test_a_late_connection_leaves_tls_only_what_is_left(
    monkeypatch: pytest.MonkeyPatch, fake: FakeJolokia, server: Certificate
) -> None:
    """Connecting that takes most of the time leaves little for the rest."""
    fake.greeting = faults.hang
    real = socket.socket.connect

    def slow(stream: socket.socket, address: Any) -> None:
        threading.Event().wait(0.8)
        real(stream, address)

    monkeypatch.setattr(socket.socket, "connect", slow)
    with pytest.raises(JolokiaError), within(0.3):
        Jolokia(fake.url.replace("http:", "https:"), hinted()).ask([QUESTION], 1.0)


# Proxies


class Proxy:
    """What stands in for a Jolokia that is a proxy: reads `node` for requests with a target, else itself."""

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
        found = self.node.answer(request)
        if self.version == 2 and request["type"] == "search" and found["status"] == 200:
            marked = [f"proxy@{name}" for name in found["value"]]
            return {**found, "value": marked + self.own.answer(request)["value"]}
        return found


PROXIED = hinted(target="10.0.0.7:7199", target_user="you", target_password=OTHER_SECRET)


@pytest.mark.parametrize("version", [1, 2])
def test_a_proxy_reads_the_target_and_finds_its_names_alone(version: int, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, version)
    proxy.node.do_reads(5)
    proxy.own.create_table("ks", "t")
    table = json.dumps({"type": "search", "mbean": "org.apache.cassandra.metrics:type=Table,keyspace=*,scope=*,name=*"})
    with closing(Jolokia(fake.url, PROXIED)) as jolokia:
        read, names, none = jolokia.ask([QUESTION, SEARCH, table], LONG_S)
    assert read["value"] == PAST + 5
    assert sorted(names["value"]) == sorted(proxy.node.answer(json.loads(SEARCH))["value"])
    assert none["value"] == []
    url = "service:jmx:rmi:///jndi/rmi://10.0.0.7:7199/jmxrmi"
    assert set(map(json.dumps, proxy.targets)) == {json.dumps({"url": url, "user": "you", "password": OTHER_SECRET})}


def test_what_the_target_refuses_is_its_answer(fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 2)
    proxy.node.twist = lambda request, answer: (
        error(403, "java.lang.Exception", "no") if "ClientRequest" in request["mbean"] else answer
    )
    with closing(Jolokia(fake.url, PROXIED)) as jolokia:
        read, names = jolokia.ask([QUESTION, SEARCH], LONG_S)
    assert (read["status"], names["status"]) == (403, 403)


def test_a_jolokia_that_is_no_proxy_is_not_believed(fake: FakeJolokia) -> None:
    fake.node.twist = lambda request, answer: {**answer, "request": request}
    assert "not a proxy: it answers for its own JVM" in refused(Jolokia(fake.url, PROXIED))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("java.lang.Exception : Authentication failed! Invalid username or password", "give --jolokia-target-user"),
        (
            "java.io.IOException : Failed to retrieve RMIServer stub:\nConnection refused",
            r"refused \(hint: check --jolokia-target\)",
        ),
        ("java.lang.Exception : Target URL x is not allowed by configuration", "jsr160ProxyAllowedTargets"),
    ],
)
def test_a_target_that_cannot_be_read_says_why(said: str, words: str, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 2)
    proxy.node.twist = lambda *_: {"status": 500, "error": said}
    told = refused(Jolokia(fake.url, PROXIED))
    assert "cannot read service:jmx:rmi:///jndi/rmi://10.0.0.7:7199/jmxrmi" in told
    assert re.search(words, told)


@pytest.mark.parametrize("value", [{"Name": "ERROR: forbidden", "StartTime": "ERROR: forbidden"}, None, [], {}, 7])
def test_a_proxy_that_does_not_tell_whom_it_reads_is_not_believed(value: Any, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 2)
    proxy.node.twist = lambda _, answer: {**answer, "value": value}
    assert "cannot identify the JVM behind the proxy" in refused(Jolokia(fake.url, PROXIED))


@pytest.mark.parametrize("value", [None, 7, {}, "proxy@", [7, None], [["proxy@x"]]])
def test_garbage_instead_of_names_is_no_end_of_the_world(value: Any, fake: FakeJolokia) -> None:
    proxy = Proxy(fake, 1)
    proxy.node.twist = lambda request, answer: {**answer, "value": value} if request["type"] == "search" else answer
    with closing(Jolokia(fake.url, PROXIED)) as jolokia:
        read, _ = jolokia.ask([QUESTION, SEARCH], LONG_S)
    assert read["value"] == PAST
