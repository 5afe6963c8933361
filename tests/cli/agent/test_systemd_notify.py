"""What the service manager hears: readiness after the first tick, a sign of life after each, and the end."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.agent.systemd_notify import Notifier


class Manager:
    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(10)
        self.socket.bind(address.replace("@", "\0"))

    def heard(self) -> list[str]:
        return self.socket.recv(4096).decode().split("\n")


@pytest.fixture(params=["socket", "@casstat-test"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}-{os.getpid()}" if request.param.startswith("@") else str(tmp_path / request.param)


@pytest.fixture
def manager(address: str) -> Iterator[Manager]:
    manager = Manager(address)
    with manager.socket:
        yield manager


def test_readiness_comes_with_the_first_tick_and_a_sign_of_life_with_each(manager: Manager, address: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())})
    notifier.alive("one")
    assert manager.heard() == ["STATUS=one", "WATCHDOG=1", "READY=1"]
    notifier.alive("two")
    assert manager.heard() == ["STATUS=two", "WATCHDOG=1"]
    notifier.reloading()
    assert manager.heard()[0] == "RELOADING=1"
    notifier.alive("three")
    assert "READY=1" in manager.heard()
    notifier.stopping()
    assert manager.heard() == ["STOPPING=1"]


@pytest.mark.parametrize("environ", [{}, {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "often"}])
def test_the_watchdog_of_others_is_not_ours(manager: Manager, address: str, environ: dict[str, str]) -> None:
    Notifier({"NOTIFY_SOCKET": address, **environ}).alive("here")
    assert manager.heard() == ["STATUS=here", "READY=1"]


def test_a_manager_that_is_gone_does_not_matter(tmp_path: Path) -> None:
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "nowhere")}).alive("here")
    Notifier({}).alive("here")
