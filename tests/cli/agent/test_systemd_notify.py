"""Messages to the service manager: ready after the first tick, a watchdog ping after each tick, and stopping."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.agent.signals import Notifier


class Manager:
    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(60)
        self.socket.bind(address.replace("@", "\0"))

    def received(self) -> list[str]:
        return self.socket.recv(4096).decode().split("\n")


@pytest.fixture(params=["socket", "@casstat-test"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}-{os.getpid()}" if request.param.startswith("@") else str(tmp_path / request.param)


@pytest.fixture
def manager(address: str) -> Iterator[Manager]:
    manager = Manager(address)
    with manager.socket:
        yield manager


def test_the_first_tick_reports_readiness_and_each_tick_feeds_the_watchdog(manager: Manager, address: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())})
    notifier.alive("one")
    assert manager.received() == ["STATUS=one", "WATCHDOG=1", "READY=1"]
    notifier.alive("two")
    assert manager.received() == ["STATUS=two", "WATCHDOG=1"]
    notifier.reloading()
    assert manager.received()[0] == "RELOADING=1"
    notifier.alive("three")
    assert "READY=1" in manager.received()
    notifier.stopping()
    assert manager.received() == ["STOPPING=1"]


@pytest.mark.parametrize("environ", [{}, {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "often"}])
def test_the_watchdog_is_fed_only_for_this_process(manager: Manager, address: str, environ: dict[str, str]) -> None:
    Notifier({"NOTIFY_SOCKET": address, **environ}).alive("here")
    assert manager.received() == ["STATUS=here", "READY=1"]


def test_messages_to_a_missing_manager_are_lost_and_later_ones_arrive(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    notifier = Notifier({"NOTIFY_SOCKET": str(path)})
    notifier.alive("first")
    manager = Manager(str(path))
    with manager.socket:
        notifier.alive("second")
        assert manager.received() == ["STATUS=second"]


def test_without_a_manager_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a socket was opened"))
    notifier = Notifier({"WATCHDOG_USEC": "10000000"})
    notifier.alive("here")
    notifier.stopping()
    assert notifier.watched
