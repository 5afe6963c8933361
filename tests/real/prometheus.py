"""A real Prometheus, started on loopback and asked what it has."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.real.stores import HOST, Program, asked, free_port, scraping

Result = list[dict[str, Any]]


class Prometheus(Program):
    """Scrapes what its jobs say, every second."""

    def __init__(self, folder: Path, jobs: Mapping[str, Mapping[str, Any]], rules: Sequence[Path] = ()) -> None:
        """Take the jobs by name, each as Prometheus' configuration has it, without the name; and files of rules."""
        self.address = f"http://{HOST}:{free_port()}"
        folder.mkdir()
        more = {"rule_files": [str(path) for path in rules]} if rules else {}
        (folder / "prometheus.yml").write_text(scraping(jobs, **more))
        command = ["/usr/bin/env", "prometheus", f"--config.file={folder}/prometheus.yml"]
        command += [
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={self.address.removeprefix('http://')}",
        ]
        super().__init__(command, folder / "log", lambda: asked(f"{self.address}/-/ready") != b"")

    def query(self, text: str, time_s: float) -> Result:
        """Return what an instant query gives."""
        answer = asked(f"{self.address}/api/v1/query?" + urlencode({"query": text, "time": time_s}))
        found: Result = json.loads(answer)["data"]["result"]
        return found

    def rules(self) -> Result:
        """Return the groups of rules, with how each rule fared when it was evaluated last."""
        found: Result = json.loads(asked(f"{self.address}/api/v1/rules"))["data"]["groups"]
        return found

    def value(self, text: str, time_s: float) -> float:
        """Return the value of the one series that a query gives."""
        (found,) = self.query(text, time_s)
        return float(found["value"][1])
