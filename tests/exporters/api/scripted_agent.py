"""An agent behind the API, with responses that a test sets."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from collector.model.snapshot import NOWHERE, Identity, Snapshot, Tick
from collector.recording.writer import Position
from exporters.recent_ticks import RecentTicks
from tests.exporters.samples import TIME_S, busy

FILES = ("20231114T221320.jsonl.zst", "20231114T231320.jsonl.zst", "20231115T001320.jsonl.zst")


class Scripted:
    """An `AgentApi` with responses that a test sets."""

    def __init__(self, folder: Path, exposition: bytes = b"up 1\n", kept: int = 10) -> None:
        self.recent = RecentTicks(kept)
        self.journal = folder
        self.wrong = self.waits = ""
        self.exposition = {False: exposition, True: gzip.compress(exposition, 1)}
        self.known: dict[str, dict[str, Any]] = {}
        self.disk: Exception | None = None
        self.time_s = TIME_S
        self.runs = self

    def tick(self, count: int = 1, first: bool = False) -> None:
        """Add `count` ticks, one second apart; if `first` is set, they have no samples, like an agent's first tick."""
        for _ in range(count):
            self.time_s += 1
            tick = Tick(self.time_s)
            snapshot = Snapshot("n", tick, ())
            sample = None if first else replace(busy(), tick=tick)
            self.recent.add(snapshot, Identity(node="10.0.0.1"), NOWHERE, sample, Position(FILES[-1]))

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        return self.exposition[compressed]

    def node(self) -> Mapping[str, Any]:
        return {"node": "10.0.0.1", "interval_s": 1.0}

    def unready(self) -> str:
        return self.waits

    def unhealthy(self) -> str:
        return self.wrong

    def all_runs(self) -> Sequence[Mapping[str, Any]]:
        return list(self.known.values())

    def renew(self, identifier: str) -> Mapping[str, Any]:
        return self._active(identifier)

    def begin(self, name: str, lease_s: float | None = None) -> Mapping[str, Any]:
        self.lease_s = lease_s
        if self.disk:
            raise self.disk
        run = {"id": str(len(self.known) + 1), "name": name, "begin_s": TIME_S, "end_s": None, "marks": []}
        self.known[str(run["id"])] = run
        return run

    def mark(self, identifier: str, text: str) -> Mapping[str, Any]:
        content = self._active(identifier)
        content["marks"].append({"time_s": TIME_S, "text": text})
        return content

    def end(self, identifier: str) -> Mapping[str, Any]:
        content = self._active(identifier)
        content["end_s"] = TIME_S
        return content

    def _active(self, run: str) -> dict[str, Any]:
        content = self.known[run]
        if content["end_s"] is not None:
            raise ValueError("the run has ended")
        return content


def journal(folder: Path) -> Path:
    """Create three one-hour journal files and some other files in `folder`, and return `folder`."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(FILES):
        (folder / name).write_bytes(bytes(range(256)) * (number + 1))
    (folder / ".lock").touch()
    (folder / "secret.txt").write_text("secret")
    (folder / "20231115T011320.jsonl.zst").symlink_to(folder / "secret.txt")
    return folder


def content(body: bytes) -> Any:
    return json.loads(body)
