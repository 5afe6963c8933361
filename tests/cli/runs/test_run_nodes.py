"""What is known about the agents of a run before it begins."""

from typing import Any

from cli.runs.run_nodes import AgentState, states_of
from collector.cluster.live.agent_connection import AgentError
from collector.cluster.live.node_address import parse_address
from collector.http.access import Access
from collector.runs.agent_client import AgentClient


class FakeAgent(AgentClient):
    """An agent that responds to each path with given content, and to no others."""

    def __init__(self, host: str, content: dict[str, Any]) -> None:
        super().__init__(parse_address(f"{host}:17199", "http"), Access())
        self._content = content

    def json(self, path: str) -> Any:
        if path not in self._content:
            raise AgentError(f"{self.address.url}: connection refused")
        return self._content[path]


def test_the_state_of_an_agent_includes_its_active_runs() -> None:
    runs = [{"name": "old", "end_s": 5.0}, {"name": "ramp", "end_s": None}]
    busy = FakeAgent("h1", {"/api/v1/node": {"answers": True}, "/api/v1/runs?active=true": runs})
    waiting = FakeAgent("h2", {"/api/v1/node": {"answers": False}, "/api/v1/runs?active=true": []})
    absent = FakeAgent("h3", {})
    assert states_of([busy, waiting, absent]) == [AgentState(True, ("ramp on h1:17199",)), AgentState(), AgentState()]
