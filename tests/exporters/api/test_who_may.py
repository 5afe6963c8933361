"""Access control: authentication, the Host header, and write permission."""

import asyncio
import base64
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import bcrypt
import pytest

from exporters.api.auth import Guard, Hosts, Passwords, credentials, is_host_name, is_loopback, write_refusal
from exporters.api.openapi import PATHS
from exporters.api.web_config import IF_GIVEN, Tls, WebConfig
from exporters.rate_limited_logger import RateLimitedLogger
from tests.every import every
from tests.exporters.api.asking import ask

KNOWN = "correct horse"
T = TypeVar("T")
USERS = {"alice": bcrypt.hashpw(KNOWN.encode(), bcrypt.gensalt(4)).decode()}
PLAIN = {b"content-type": b"application/json", b"host": b"localhost:17199"}


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


@every(
    ("header", "expected"),
    [
        (basic("alice:a:b"), ("alice", b"a:b")),
        (b"bAsIc " + base64.b64encode(b"x:"), ("x", b"")),
        (basic("alice"), None),
        (b"Basic !!!", None),
        (b"Basic \xff\xfe", None),
        (b"Basic " + base64.b64encode(b"\xff:x"), None),
        (b"Bearer abc", None),
        (b"", None),
    ],
)
def test_credentials_are_read_from_an_authorization_header(header: bytes, expected: tuple[str, bytes] | None) -> None:
    assert credentials(header) == expected


def run(client: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(client)


def test_only_the_right_password_is_accepted() -> None:
    passwords = Passwords()

    async def check(name: str, password: bytes) -> bool:
        return await passwords.check(USERS, name, password)

    async def all_attempts() -> list[bool]:
        return [
            await check("alice", KNOWN.encode()),
            await check("alice", KNOWN.encode()),
            await check("alice", b"wrong"),
            await check("bob", KNOWN.encode()),
            await check("alice", b"\x00"),
            await check("alice", b"x" * 1000),
            await check("", b""),
            await check("\udcff", b""),
        ]

    assert run(all_attempts()) == [True, True, False, False, False, False, False, False]
    passwords.close()


def test_checked_passwords_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []

    def check(password: bytes, hashed: bytes) -> bool:
        checked.append(hashed)
        return password == b"right"

    monkeypatch.setattr(bcrypt, "checkpw", check)
    passwords = Passwords()

    async def many() -> None:
        right = [passwords.check(USERS, "alice", b"right") for _ in range(50)]
        assert await asyncio.gather(*right) == [True] * 50
        assert not await passwords.check(USERS, "alice", b"wrong")
        for number in range(600):
            assert not await passwords.check(USERS, "alice", b"wrong %d" % number)
        assert await passwords.check(USERS, "alice", b"right")
        assert await passwords.check({"alice": USERS["alice"] + " "}, "alice", b"right")
        assert not await passwords.check(USERS, "bob", b"right")

    run(many())
    assert len(checked) == 1 + 1 + 600 + 1 + 1
    # For an unknown user, the password is checked against a hash with the same cost.
    assert checked[-1][:7] == USERS["alice"].encode()[:7]
    assert checked[-1] != USERS["alice"].encode()
    passwords.close()


@every(
    ("host", "is_local"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.0.63.9", "::1", "::ffff:127.0.0.1")],
        *[(host, False) for host in ("10.0.0.1", "", "localhost.evil", "::ffff:10.0.0.1")],
    ],
)
def test_loopback_addresses_are_recognised(host: str, is_local: bool) -> None:
    assert is_loopback(host) == is_local


def write(
    peer: str, headers: dict[bytes, bytes], *, requires_credentials: bool = False, has_credentials: bool = False
) -> str:
    """Return the reason for refusing a write, or "" if it is allowed."""
    known = Hosts().knows(headers[b"host"].decode())
    return write_refusal(
        peer, headers, requires_credentials=requires_credentials, has_credentials=has_credentials, known_host=known
    )


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:17199", b"[::1]:17199", b"LOCALHOST:1"])
def test_without_credentials_local_clients_may_write(host: bytes) -> None:
    assert write("127.0.0.1", {**PLAIN, b"host": host}) == ""


@every(
    ("peer", "headers", "words"),
    [
        ("10.0.0.1", {}, "a write from another machine or a proxy needs credentials"),
        ("127.0.0.1", {b"x-forwarded-for": b"10.0.0.1"}, "a write from another machine or a proxy needs credentials"),
        ("127.0.0.1", {b"host": b"evil.example"}, "Host header"),
        ("127.0.0.1", {b"host": b"localhost.evil.example"}, "Host header"),
        ("127.0.0.1", {b"host": b""}, "Host header"),
        ("127.0.0.1", {b"origin": b"http://localhost:17199"}, "changes from web pages are not allowed"),
        ("127.0.0.1", {b"sec-fetch-site": b"cross-site"}, "changes from web pages are not allowed"),
        ("127.0.0.1", {b"content-type": b"text/plain"}, "Content-Type: application/json"),
        ("127.0.0.1", {b"content-type": b""}, "Content-Type: application/json"),
    ],
)
def test_other_clients_and_web_pages_may_not_write(peer: str, headers: dict[bytes, bytes], words: str) -> None:
    assert words in write(peer, {**PLAIN, **headers})


def test_configured_credentials_are_required_of_every_client() -> None:
    assert write("127.0.0.1", PLAIN, requires_credentials=True)
    assert not write("10.0.0.1", {**PLAIN, b"host": b"any"}, requires_credentials=True, has_credentials=True)
    assert write("10.0.0.1", {**PLAIN, b"origin": b"http://evil"}, requires_credentials=True, has_credentials=True)


@every(
    ("header", "known"),
    [
        *[(header, True) for header in ("localhost", "LocalHost.:17199", "127.0.0.1", "10.0.0.1:80", "[::1]:17199")],
        *[(header, True) for header in ("db7", "db7.example.com:17199", "cass.example:17199", "[fe80::1]", "0.0.0.0")],
        *[(header, False) for header in ("", ":17199", "evil.example", "localhost.evil.example", "db7.evil.example")],
        *[(header, False) for header in ("10.0.0.1.evil.example", "[evil]", "localhost:1:2", "localhost@evil", "a b")],
        *[(header, False) for header in ("localhost, evil.example", "2130706433", "\x00", "127.0.0.1x", "[::1")],
    ],
)
def test_only_local_and_configured_host_names_are_known(header: str, known: bool) -> None:
    assert Hosts(["Cass.Example."], lambda: "db7.example.com").knows(header) == known


@pytest.mark.parametrize("name", ["a", "cass-0.cass.prod.svc", "x_y.example."])
def test_valid_host_names_are_accepted(name: str) -> None:
    assert is_host_name(name)


@every("name", ["", "http://a", "a:1", "a/b", "a b", "*.a", "a..b", "é.example", "x" * 64])
def test_invalid_host_names_are_rejected(name: str) -> None:
    assert not is_host_name(name)


@every(
    ("local", "headers", "refused"),
    [
        ("127.0.0.1", {b"host": b"evil.example"}, True),
        ("127.0.0.1", {b"host": b"localhost"}, False),
        ("127.0.0.1", {}, False),
        ("10.0.0.1", {b"host": b"cassandra-0.cassandra:17199"}, False),
        ("10.0.0.1", {b"host": b"cassandra-0.cassandra", b"user-agent": b"Prometheus/2.42"}, False),
        ("10.0.0.1", {b"host": b"evil.example", b"user-agent": b"Mozilla/5.0 (X11)"}, True),
        ("10.0.0.1", {b"host": b"evil.example", b"accept-language": b""}, True),
        ("10.0.0.1", {b"host": b"evil.example", b"referer": b"http://evil.example/"}, True),
        ("10.0.0.1", {b"host": b"10.0.0.1:17199", b"user-agent": b"Mozilla/5.0 (X11)"}, False),
    ],
)
def test_dns_rebinding_is_refused(local: str, headers: dict[bytes, bytes], refused: bool) -> None:
    assert bool(Hosts().refusal_reason(headers, local)) == refused


class GuardClient:
    """A client of a guarded application; the application itself always responds with status 200."""

    def __init__(self, config: WebConfig, *, anonymous_reads: bool = False) -> None:
        self.config = config
        self.now_s = 0.0
        self.log_lines: list[str] = []
        self.passwords = Passwords()
        log = RateLimitedLogger(self.log_lines.append, lambda: self.now_s)
        self.guard = Guard(
            self._respond,
            lambda: self.config,
            self.passwords,
            log,
            Hosts(),
            lambda: self.now_s,
            anonymous_reads=anonymous_reads,
        )

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    def __call__(
        self, method: str = "GET", peer: str = "10.0.0.9", path: str = "/", **headers: str
    ) -> tuple[int, dict[str, str]]:
        """Send a request, and return the response's status and headers."""
        response = ask(self.guard, method, path, b"", peer, **headers)
        return response.status, response.headers


def test_every_path_requires_a_users_password() -> None:
    client = GuardClient(WebConfig(users=tuple(USERS.items()), headers=(("X-Frame-Options", "deny"),)))
    status, headers = client()
    assert (status, headers["www-authenticate"][:5], headers["x-frame-options"]) == (401, "Basic", "deny")
    assert client(authorization=basic("alice:nope").decode())[0] == 401
    assert client(authorization=basic(f"alice:{KNOWN}").decode())[0] == 200
    assert client("POST", authorization=basic(f"alice:{KNOWN}").decode(), content_type="application/json")[0] == 200
    assert client("POST", peer="127.0.0.1", content_type="application/json", host="localhost")[0] == 401
    client.config = WebConfig()
    assert client()[0] == 200
    client.passwords.close()


def test_many_wrong_passwords_produce_two_log_lines() -> None:
    client = GuardClient(WebConfig(users=tuple(USERS.items())))
    for _ in range(100):
        assert client(authorization=basic("alice:hunter2").decode())[0] == 401
    client.now_s = 61
    client.guard._log.flush()
    first, second = client.log_lines
    assert first == "10.0.0.9: wrong user name or password"
    assert second == f"{first} (99 times in the last 61 s)"
    client.passwords.close()


def test_requests_above_the_rate_limit_get_status_429() -> None:
    client = GuardClient(WebConfig(interval_s=2.0, burst=3))
    assert [client()[0] for _ in range(5)] == [200, 200, 200, 429, 429]
    client.now_s = 2.0
    assert [client()[0] for _ in range(2)] == [200, 429]


def test_with_optional_certificates_only_a_certificate_allows_writes() -> None:
    client = GuardClient(WebConfig(Tls(Path("a"), Path("b"), IF_GIVEN, Path("c"))))
    assert client()[0] == 200
    assert client("POST", peer="127.0.0.1", content_type="application/json", host="localhost")[0] == 403


def test_unknown_host_names_are_refused_without_tls_and_passwords() -> None:
    client = GuardClient(WebConfig())
    assert client(host="localhost")[0] == 200
    assert client(host="evil.example")[0] == 403
    assert client.log_lines[0].startswith("10.0.0.9: request refused: unknown name 'evil.example' in the Host header")
    client.config = WebConfig(Tls(Path("a"), Path("b")))
    assert client(host="evil.example")[0] == 200
    client.config = WebConfig(users=tuple(USERS.items()))
    assert client(host="evil.example")[0] == 401
    client.passwords.close()


PUBLIC = ("/", "/metrics", "/-/healthy", "/-/ready", "/api/v1/openapi.json", "/api/v1/time")
DATA = sorted({path.replace("{name}", "a").replace("{run}", "1") for path in PATHS} - {*PUBLIC})


@every("path", [*PUBLIC, *DATA])
@every("method", ["GET", "HEAD", "OPTIONS"])
def test_without_credentials_other_machines_may_read_only_metrics(path: str, method: str) -> None:
    for tls in (None, Tls(Path("a"), Path("b")), Tls(Path("a"), Path("b"), IF_GIVEN, Path("c"))):
        client = GuardClient(WebConfig(tls))
        for peer in ("10.0.0.9", "::ffff:10.0.0.9", "fe80::1", ""):
            assert client(method, peer, path)[0] == (200 if path in PUBLIC else 403), peer
        for peer in ("127.0.0.1", "127.0.63.9", "::1", "::ffff:127.0.0.1"):
            assert client(method, peer, path)[0] == 200, peer
    assert GuardClient(WebConfig(), anonymous_reads=True)(method, path=path)[0] == 200
    client = GuardClient(WebConfig(users=tuple(USERS.items())))
    assert client(method, path=path)[0] == 401
    assert client(method, path=path, authorization=basic(f"alice:{KNOWN}").decode())[0] == 200
    client.passwords.close()


@pytest.mark.parametrize("header", ["forwarded", "x_forwarded_for", "via"])
def test_clients_of_a_proxy_on_this_machine_are_not_programs_on_it(header: str) -> None:
    of_proxy = {header: "203.0.113.9"}
    client = GuardClient(WebConfig())
    for path in DATA:
        assert client(peer="127.0.0.1", path=path, **of_proxy)[0] == 403, path
    assert client(peer="127.0.0.1", path="/metrics", **of_proxy)[0] == 200
    assert client.log_lines[0].startswith("127.0.0.1: read refused: recordings, samples and runs need credentials")
    assert GuardClient(WebConfig(), anonymous_reads=True)(peer="127.0.0.1", path=DATA[0], **of_proxy)[0] == 200


def test_anonymous_reads_are_not_writes() -> None:
    client = GuardClient(WebConfig(), anonymous_reads=True)
    assert client("POST", path="/api/v1/runs", content_type="application/json", host="localhost")[0] == 403
