"""Fixtures for the fault tests: a fake node, and a port that refuses connections."""

import os
import socket
from collections.abc import Iterator

import pytest

from tests.faults.fake_jolokia import FakeJolokia


@pytest.fixture
def fake() -> Iterator[FakeJolokia]:
    server = FakeJolokia()
    yield server
    server.close()


@pytest.fixture
def refusing_url() -> Iterator[str]:
    """Yield the URL of a port that refuses connections and that no other process can use."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/jolokia"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the environment variables that change casstat's behaviour."""
    for name in [name for name in os.environ if name.startswith("CASSTAT_") or name in ("NO_COLOR", "COLUMNS")]:
        monkeypatch.delenv(name)
