"""The bounds of connections, and the addresses at which the API may listen."""

import socket
from functools import partial

import pytest

from exporters.api.connections import BODY_S, HEAD_S, IDLE_S, STALLED_S, ClientConnection, Connections
from exporters.api.listen_address import ListenError, address, bound


def over_at(visit: ClientConnection) -> float:
    """Return the second from which on a visit is over."""
    return next((second for second in range(1000) if visit.is_over(second)), 1000)


def test_a_visit_lasts_as_long_as_something_comes_of_it() -> None:
    visit = ClientConnection(lambda: None, 0.0)
    # Bytes that trickle in do not make the first head's time longer.
    visit.begins(5.0)
    assert over_at(visit) == HEAD_S
    visit.sends(6.0)
    assert over_at(visit) == 6 + BODY_S
    visit.is_served()
    assert over_at(visit) == 1000
    visit.stalls(20.0)
    assert over_at(visit) == 20 + STALLED_S
    visit.reads()
    visit.is_idle(30.0)
    assert over_at(visit) == 30 + IDLE_S
    visit.begins(40.0)
    visit.begins(45.0)
    assert over_at(visit) == 40 + HEAD_S


def test_where_it_is_full_who_never_asked_goes_first_then_who_waits_and_nobody_who_is_served() -> None:
    ended: list[str] = []
    visits = Connections(3)
    busy, waiting, silent = (
        ClientConnection(partial(ended.append, name), 0.0) for name in ("busy", "waiting", "silent")
    )
    for visit in (busy, waiting, silent):
        assert visits.enter(visit)
    for visit in (busy, waiting):
        visit.sends(0.0)
        visit.is_served()
    waiting.is_idle(0.0)
    for _ in range(2):
        newcomer = ClientConnection(lambda: None, 0.0)
        assert visits.enter(newcomer)
        newcomer.sends(0.0)
    assert ended == ["silent", "waiting"]
    assert not visits.enter(ClientConnection(lambda: None, 0.0))
    assert len(visits) == 3


def test_those_that_had_their_time_are_ended() -> None:
    ended: list[int] = []
    visits = Connections()
    visits.enter(ClientConnection(lambda: ended.append(1), 0.0))
    visits.enter(ClientConnection(lambda: ended.append(2), 5.0))
    assert (visits.sweep(HEAD_S), ended, len(visits)) == (1, [1], 1)


@pytest.mark.parametrize(
    ("listen", "found"),
    [
        ("127.0.0.1:17199", ("127.0.0.1", 17199)),
        (":17199", ("", 17199)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:1", ("localhost", 1)),
    ],
)
def test_addresses(listen: str, found: tuple[str, int]) -> None:
    assert address(listen) == found


@pytest.mark.parametrize("listen", ["", "99", "127.0.0.1", "::1:17199", "host:port", "host:65536", "[::1]", "a b:-1"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ListenError, match="is not HOST:PORT"):
        address(listen)


def test_where_nobody_can_listen_it_is_said_why() -> None:
    with bound("127.0.63.1:0") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=rf"^127.0.63.1:{port}: is taken by another program"):
            bound(f"127.0.63.1:{port}")
    with pytest.raises(ListenError, match="is no address of this machine"):
        bound("192.0.2.1:0")
    with pytest.raises(ListenError, match="cannot be resolved"):
        bound(f"{'x' * 64}.invalid:0")


def test_all_addresses_are_those_of_both_families() -> None:
    with bound(":0") as listening:
        port = listening.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 5).close()
