"""An agent for tests of `casstat record`."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.exporters.api.scripted_agent import Scripted

HOST = "127.0.63.5"


class RecordingAgent(Scripted):
    """An agent whose journal contains ticks up to now, and already those of the next minutes."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.name = name
        self.answers = True

    def node(self) -> Mapping[str, Any]:
        node = {"node": self.name, "interval_s": 1.0, "casstat": "0.1.0", "address": HOST, "peers": []}
        return {**node, "answers": self.answers, "tick_s": float(int(time.time()))}
