"""What the tests of faults share: a fake node, and a port where nobody listens."""

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
def nobody() -> Iterator[str]:
    """The URL of a port that is taken, so that nobody else gets it, but refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/jolokia"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take casstat's own settings out of the environment."""
    for name in [name for name in os.environ if name.startswith("CASSTAT_") or name in ("NO_COLOR", "COLUMNS")]:
        monkeypatch.delenv(name)
