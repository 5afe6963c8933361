"""Fixtures for the fault tests: nodes with a fake Jolokia or an agent, and a port that refuses connections."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fetched_nodes import RecordedNode, serving_history
from tests.faults.recording_agent import Node, serving


@pytest.fixture
def fake() -> Iterator[FakeJolokia]:
    server = FakeJolokia()
    yield server
    server.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """The node n1, whose journal contains the ten seconds before the test and the two minutes after its start."""
    with serving(tmp_path / "journal", "n1") as served:
        yield served


@pytest.fixture
def recorded_node(tmp_path: Path) -> Iterator[RecordedNode]:
    """The node n1, whose journal contains the ten minutes before the test."""
    with serving_history(tmp_path / "journal", "n1") as served:
        yield served


@pytest.fixture
def without_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omit a run's tables, plots and summary, which take most of the time of a short run."""
    monkeypatch.setattr("cli.record.record_program.finish", lambda *_, **__: False)


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
