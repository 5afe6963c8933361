"""An agent with a journal, for tests of `casstat record` and `casstat fetch`."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from starlette.types import Receive, Scope, Send

from exporters.api.app import build
from exporters.api.server import Server
from tests.collector.merge.recorded_nodes import busy, record
from tests.exporters.api.scripted_agent import Scripted

HOST = "127.0.63.5"
# Journals are written in advance: they begin BEFORE_S before a test begins, and end AFTER_S after it begins.
BEFORE_S, AFTER_S = 10, 120
READS = 10
"""The number of reads per second of every node."""


class RecordingAgent(Scripted):
    """An agent whose latest tick is always the current second; its journal is written in advance."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.name = name
        self.answers = True

    def node(self) -> Mapping[str, Any]:
        node = {"node": self.name, "interval_s": 1.0, "casstat": "0.1.0", "address": HOST, "peers": []}
        node |= {"cluster": "c"}
        return {**node, "answers": self.answers, "tick_s": float(int(time.time()))}


class Node(NamedTuple):
    """A node's agent, and the address at which it is served."""

    agent: RecordingAgent
    address: str


def record_around_now(folder: Path, name: str) -> Path:
    """Record ticks from BEFORE_S ago to AFTER_S from now, and return the journal's directory."""
    return record(folder, busy(name, BEFORE_S + AFTER_S, begin_s=float(int(time.time()) - BEFORE_S)))


@contextmanager
def serving(folder: Path, name: str, clock: Callable[[], float] = time.time) -> Iterator[Node]:
    """Serve the API of an agent with its journal in `folder`, which is recorded first if it is missing."""
    if not folder.exists():
        record_around_now(folder, name)
    agent = RecordingAgent(folder, name)
    app = build(agent, clock)

    async def with_clock(scope: Scope, receive: Receive, send: Send) -> None:
        # The application uses `clock` only if the server has not set the time of receipt.
        scope.pop("casstat.received_s", None)
        await app(scope, receive, send)

    server = Server(with_clock, f"{HOST}:0", None, print)
    try:
        yield Node(agent, f"{HOST}:{server.address[1]}")
    finally:
        server.stop()
