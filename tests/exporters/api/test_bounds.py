"""The API's connection limits and its listen addresses."""

import socket
import threading
from functools import partial
from pathlib import Path

import pytest

from exporters.api.sockets import (
    BODY_S,
    HEAD_S,
    IDLE_S,
    STALLED_S,
    ClientConnection,
    Connections,
    ListenError,
    bind,
    check_address,
    parse_address,
)
from tests.every import every


def expires_at(connection: ClientConnection) -> float:
    """Return the first second at which a connection has expired, or 1000 if it does not expire before then."""
    return next((second for second in range(1000) if connection.is_expired(second)), 1000)


def test_each_state_of_a_connection_has_a_deadline() -> None:
    connection = ClientConnection(lambda: None, 0.0)
    # The deadline for the first request head is measured from the start of the connection, not from the first bytes.
    connection.request_begins(5.0)
    assert expires_at(connection) == HEAD_S
    connection.head_complete(6.0)
    assert expires_at(connection) == 6 + BODY_S
    connection.request_complete()
    assert expires_at(connection) == 1000
    connection.write_stalled(20.0)
    assert expires_at(connection) == 20 + STALLED_S
    connection.write_resumed()
    connection.idle(30.0)
    assert expires_at(connection) == 30 + IDLE_S
    connection.request_begins(40.0)
    connection.request_begins(45.0)
    assert expires_at(connection) == 40 + HEAD_S


def test_at_the_limit_silent_connections_are_evicted_then_idle_ones_but_never_busy_ones() -> None:
    ended: list[str] = []
    connections = Connections(3)
    busy, waiting, silent = (
        ClientConnection(partial(ended.append, name), 0.0) for name in ("busy", "waiting", "silent")
    )
    for connection in (busy, waiting, silent):
        assert connections.add(connection)
    for connection in (busy, waiting):
        connection.head_complete(0.0)
        connection.request_complete()
    waiting.idle(0.0)
    for _ in range(2):
        newcomer = ClientConnection(lambda: None, 0.0)
        assert connections.add(newcomer)
        newcomer.head_complete(0.0)
    assert ended == ["silent", "waiting"]
    assert not connections.add(ClientConnection(lambda: None, 0.0))
    assert len(connections) == 3


def test_expired_connections_are_closed() -> None:
    ended: list[int] = []
    connections = Connections()
    connections.add(ClientConnection(lambda: ended.append(1), 0.0))
    connections.add(ClientConnection(lambda: ended.append(2), 5.0))
    assert (connections.close_expired(HEAD_S), ended, len(connections)) == (1, [1], 1)


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("127.0.0.1:17199", ("127.0.0.1", 17199)),
        (":17199", ("", 17199)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:1", ("localhost", 1)),
    ],
)
def test_listen_addresses_are_parsed(listen: str, expected: tuple[str, int]) -> None:
    assert parse_address(listen) == expected


@every("listen", ["", "99", "127.0.0.1", "::1:17199", "host:port", "host:65536", "[::1]", "a b:-1"])
def test_malformed_addresses_are_rejected(listen: str) -> None:
    with pytest.raises(ListenError, match="not HOST:PORT"):
        parse_address(listen)


def test_an_address_that_cannot_be_bound_is_reported_with_its_cause() -> None:
    with bind("127.0.63.1:0") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=rf"^127.0.63.1:{port}: address already in use"):
            bind(f"127.0.63.1:{port}")
    with pytest.raises(ListenError, match="not an address of this machine"):
        bind("192.0.2.1:0")
    with pytest.raises(ListenError, match="cannot be resolved"):
        bind(f"{'x' * 64}.invalid:0")


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_checking_an_address_never_accepts_a_connection(kind: str, tmp_path: Path) -> None:
    family = socket.AF_INET if kind == "tcp" else socket.AF_UNIX
    if kind == "tcp":
        with bind("127.0.63.1:0") as free:
            address = free.getsockname()
        listen = "{}:{}".format(*address)
    else:
        address, listen = str(tmp_path / "socket"), f"unix:{tmp_path / 'socket'}"
    checked, accepted = threading.Event(), threading.Event()

    def connect() -> None:
        """Connect repeatedly, until a connection is accepted or all checks have been made."""
        while not checked.is_set():
            with socket.socket(family, socket.SOCK_STREAM) as client:
                if client.connect_ex(address) == 0:
                    accepted.set()
                    return

    client = threading.Thread(target=connect)
    client.start()
    for _ in range(1000):
        check_address(listen)
    checked.set()
    client.join()
    assert not accepted.is_set()


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_without_a_host_the_api_listens_on_both_address_families(host: str) -> None:
    if host == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with bind(":0") as listener, socket.create_connection((host, listener.getsockname()[1]), 5) as client:
        server, _ = listener.accept()
        server.close()
        assert client.recv(1) == b""
