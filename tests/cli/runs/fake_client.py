"""A client of an agent that does not exist."""

from typing import Any

from collector.agents.addresses import parse_address
from collector.agents.agent_client import AgentClient
from collector.agents.agent_connection import AgentError
from collector.http.access import Access


class FakeAgent(AgentClient):
    """An agent that responds only to the paths in `content`."""

    def __init__(self, host: str, content: dict[str, Any]) -> None:
        super().__init__(parse_address(f"{host}:17199", "http"), Access())
        self.content = content

    def json(self, path: str) -> Any:
        if path not in self.content:
            raise AgentError(f"{self.address.url}: connection refused")
        return self.content[path]
