"""A real Prometheus on loopback, and its query API."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.ports import free_port
from tests.real.stores import HOST, StoreProcess, fetched, scrape_config

Result = list[dict[str, Any]]


class Prometheus(StoreProcess):
    """A Prometheus that scrapes its jobs every second, and accepts remote write."""

    def __init__(
        self,
        folder: Path,
        jobs: Mapping[str, Mapping[str, Any]] = {},
        rules: Sequence[Path] = (),
        options: Sequence[str] = (),
    ) -> None:
        """`jobs` maps scrape job names to their settings in Prometheus's configuration; `rules` are rule files."""
        self.address = f"http://{HOST}:{free_port(HOST)}"
        self.write_url = f"prometheus+{self.address}/api/v1/write"
        folder.mkdir()
        more = {"rule_files": [str(path) for path in rules]} if rules else {}
        (folder / "prometheus.yml").write_text(scrape_config(jobs, **more))
        command = ["/usr/bin/env", "prometheus", f"--config.file={folder}/prometheus.yml"]
        command += [
            f"--storage.tsdb.path={folder}/data",
            "--web.enable-remote-write-receiver",
            f"--web.listen-address={self.address.removeprefix('http://')}",
            *options,
        ]
        super().__init__(command, folder / "log", lambda: fetched(f"{self.address}/-/ready") != b"")

    def query(self, text: str, time_s: float) -> Result:
        answer = fetched(f"{self.address}/api/v1/query?" + urlencode({"query": text, "time": time_s}))
        series: Result = json.loads(answer)["data"]["result"]
        return series

    def rules(self) -> Result:
        """Return the rule groups, with the result of each rule's last evaluation."""
        groups: Result = json.loads(fetched(f"{self.address}/api/v1/rules"))["data"]["groups"]
        return groups

    def value(self, text: str, time_s: float) -> float:
        """Return the value of the only series in the result of an instant query."""
        (series,) = self.query(text, time_s)
        return float(series["value"][1])
