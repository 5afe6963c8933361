"""Who may ask, and who may change something."""

import asyncio
import base64
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import bcrypt
import pytest

from exporters.api.auth import Guard
from exporters.api.client_addresses import is_loopback
from exporters.api.credentials import Passwords, credentials
from exporters.api.host_header import Hosts, is_host_name
from exporters.api.web_access import WebConfig
from exporters.api.web_tls import IF_GIVEN, Tls
from exporters.api.write_permission import refused_write
from exporters.rate_limited_logger import RateLimitedLogger
from tests.exporters.api.asking import ask

KNOWN = "correct horse"
T = TypeVar("T")
USERS = {"alice": bcrypt.hashpw(KNOWN.encode(), bcrypt.gensalt(4)).decode()}
PLAIN = {b"content-type": b"application/json", b"host": b"localhost:17199"}


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


@pytest.mark.parametrize(
    ("header", "found"),
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
def test_what_a_header_holds(header: bytes, found: tuple[str, bytes] | None) -> None:
    assert credentials(header) == found


def run(asked: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asked)


def test_only_who_knows_the_password_gets_in() -> None:
    passwords = Passwords()

    async def fit(name: str, password: bytes) -> bool:
        return await passwords.fit(USERS, name, password, "peer")

    async def all_of_them() -> list[bool]:
        return [
            await fit("alice", KNOWN.encode()),
            await fit("alice", KNOWN.encode()),
            await fit("alice", b"wrong"),
            await fit("bob", KNOWN.encode()),
            await fit("alice", b"\x00"),
            await fit("alice", b"x" * 1000),
            await fit("", b""),
            await fit("\udcff", b""),
        ]

    assert run(all_of_them()) == [True, True, False, False, False, False, False, False]
    passwords.close()


def test_what_is_known_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []

    def check(password: bytes, hashed: bytes) -> bool:
        checked.append(hashed)
        return password == b"right"

    monkeypatch.setattr(bcrypt, "checkpw", check)
    passwords = Passwords()

    async def many() -> None:
        right = [passwords.fit(USERS, "alice", b"right", "peer") for _ in range(50)]
        assert await asyncio.gather(*right) == [True] * 50
        assert not await passwords.fit(USERS, "alice", b"wrong", "peer")
        for number in range(600):
            assert not await passwords.fit(USERS, "alice", b"wrong %d" % number, "peer")
        assert await passwords.fit(USERS, "alice", b"right", "peer")
        assert await passwords.fit({"alice": USERS["alice"] + " "}, "alice", b"right", "peer")
        assert not await passwords.fit(USERS, "bob", b"right", "peer")

    run(many())
    assert len(checked) == 1 + 1 + 600 + 1 + 1
    # Whom nobody knows is checked against a hash of the same cost.
    assert checked[-1][:7] == USERS["alice"].encode()[:7]
    assert checked[-1] != USERS["alice"].encode()
    passwords.close()


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.0.63.9", "::1", "::ffff:127.0.0.1")],
        *[(host, False) for host in ("10.0.0.1", "", "localhost.evil", "::ffff:10.0.0.1")],
    ],
)
def test_which_addresses_are_the_machines_own(host: str, is_local: bool) -> None:
    assert is_loopback(host) == is_local


def write(peer: str, headers: dict[bytes, bytes], *, asks: bool = False, shown: bool = False) -> str:
    """Return why a request may change nothing."""
    known = Hosts().knows(headers[b"host"].decode())
    return refused_write(peer, headers, asks=asks, shown=shown, known_host=known)


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:17199", b"[::1]:17199", b"LOCALHOST:1"])
def test_without_credentials_the_machine_itself_may_change_things(host: bytes) -> None:
    assert write("127.0.0.1", {**PLAIN, b"host": host}) == ""


@pytest.mark.parametrize(
    ("peer", "headers", "words"),
    [
        ("10.0.0.1", {}, "from other machines only"),
        ("127.0.0.1", {b"x-forwarded-for": b"10.0.0.1"}, "from other machines only"),
        ("127.0.0.1", {b"host": b"evil.example"}, "Host header"),
        ("127.0.0.1", {b"host": b"localhost.evil.example"}, "Host header"),
        ("127.0.0.1", {b"host": b""}, "Host header"),
        ("127.0.0.1", {b"origin": b"http://localhost:17199"}, "a page in a browser"),
        ("127.0.0.1", {b"sec-fetch-site": b"cross-site"}, "a page in a browser"),
        ("127.0.0.1", {b"content-type": b"text/plain"}, "Content-Type: application/json"),
        ("127.0.0.1", {b"content-type": b""}, "Content-Type: application/json"),
    ],
)
def test_others_and_pages_in_browsers_may_not(peer: str, headers: dict[bytes, bytes], words: str) -> None:
    assert words in write(peer, {**PLAIN, **headers})


def test_once_credentials_are_configured_everybody_shows_them() -> None:
    assert write("127.0.0.1", PLAIN, asks=True)
    assert not write("10.0.0.1", {**PLAIN, b"host": b"any"}, asks=True, shown=True)
    assert write("10.0.0.1", {**PLAIN, b"origin": b"http://evil"}, asks=True, shown=True)


@pytest.mark.parametrize(
    ("header", "known"),
    [
        *[(header, True) for header in ("localhost", "LocalHost.:17199", "127.0.0.1", "10.0.0.1:80", "[::1]:17199")],
        *[(header, True) for header in ("db7", "db7.example.com:17199", "cass.example:17199", "[fe80::1]", "0.0.0.0")],
        *[(header, False) for header in ("", ":17199", "evil.example", "localhost.evil.example", "db7.evil.example")],
        *[(header, False) for header in ("10.0.0.1.evil.example", "[evil]", "localhost:1:2", "localhost@evil", "a b")],
        *[(header, False) for header in ("localhost, evil.example", "2130706433", "\x00", "127.0.0.1x", "[::1")],
    ],
)
def test_which_hosts_are_known(header: str, known: bool) -> None:
    assert Hosts(["Cass.Example."], lambda: "db7.example.com").knows(header) == known


@pytest.mark.parametrize("name", ["a", "cass-0.cass.prod.svc", "x_y.example."])
def test_host_names(name: str) -> None:
    assert is_host_name(name)


@pytest.mark.parametrize("name", ["", "http://a", "a:1", "a/b", "a b", "*.a", "a..b", "é.example", "x" * 64])
def test_what_is_no_host_name(name: str) -> None:
    assert not is_host_name(name)


@pytest.mark.parametrize(
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
def test_a_page_whose_name_resolves_to_the_agent_reads_nothing(
    local: str, headers: dict[bytes, bytes], refused: bool
) -> None:
    assert bool(Hosts().refused(headers, local)) == refused


class Asked:
    """A guard before an application that says yes, and the requests that are made of it."""

    def __init__(self, config: WebConfig) -> None:
        self.config = config
        self.now_s = 0.0
        self.said: list[str] = []
        self.passwords = Passwords()
        seldom = RateLimitedLogger(self.said.append, lambda: self.now_s)
        self.guard = Guard(self._yes, lambda: self.config, self.passwords, seldom, Hosts(), lambda: self.now_s)

    async def _yes(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    def __call__(self, method: str = "GET", peer: str = "10.0.0.9", **headers: str) -> tuple[int, dict[str, str]]:
        """Return status and headers of the answer."""
        found = ask(self.guard, method, "/", b"", peer, **headers)
        return found.status, found.headers


def test_every_path_wants_the_password_once_there_are_users() -> None:
    asked = Asked(WebConfig(users=tuple(USERS.items()), headers=(("X-Frame-Options", "deny"),)))
    status, headers = asked()
    assert (status, headers["www-authenticate"][:5], headers["x-frame-options"]) == (401, "Basic", "deny")
    assert asked(authorization=basic("alice:nope").decode())[0] == 401
    assert asked(authorization=basic(f"alice:{KNOWN}").decode())[0] == 200
    assert asked("POST", authorization=basic(f"alice:{KNOWN}").decode(), content_type="application/json")[0] == 200
    assert asked("POST", peer="127.0.0.1", content_type="application/json", host="localhost")[0] == 401
    asked.config = WebConfig()
    assert asked()[0] == 200
    asked.passwords.close()


def test_a_thousand_wrong_passwords_are_a_line_or_two() -> None:
    asked = Asked(WebConfig(users=tuple(USERS.items())))
    for _ in range(1000):
        assert asked(authorization=basic("alice:hunter2").decode())[0] == 401
    asked.now_s = 61
    asked.guard._say.flush()
    first, second = asked.said
    assert first == "10.0.0.9: a wrong name or password was refused"
    assert second == f"{first} (999 times in the last 61 s)"
    asked.passwords.close()


def test_requests_are_as_many_as_the_limit_allows() -> None:
    asked = Asked(WebConfig(interval_s=2.0, burst=3))
    assert [asked()[0] for _ in range(5)] == [200, 200, 200, 429, 429]
    asked.now_s = 2.0
    assert [asked()[0] for _ in range(2)] == [200, 429]


def test_policies_that_ask_for_a_certificate_if_there_is_one_let_only_those_write() -> None:
    asked = Asked(WebConfig(Tls(Path("a"), Path("b"), IF_GIVEN, Path("c"))))
    assert asked()[0] == 200
    assert asked("POST", peer="127.0.0.1", content_type="application/json", host="localhost")[0] == 403


def test_foreign_names_are_refused_where_neither_tls_nor_passwords_protect() -> None:
    asked = Asked(WebConfig())
    assert asked(host="localhost")[0] == 200
    assert asked(host="evil.example")[0] == 403
    assert asked.said[0].startswith("10.0.0.9: a request was refused: the Host header names 'evil.example'")
    asked.config = WebConfig(Tls(Path("a"), Path("b")))
    assert asked(host="evil.example")[0] == 200
    asked.config = WebConfig(users=tuple(USERS.items()))
    assert asked(host="evil.example")[0] == 401
    asked.passwords.close()
