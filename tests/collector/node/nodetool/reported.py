"""Captured nodetool output from real nodes, and the reports parsed from it."""

import importlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from collector.model.metric import Series, Value
from collector.node.nodetool.reports.report import Report
from tests.collector.captures import FOLDER

VERSIONS = ("3.11.19", "4.0.17", "4.1.9", "5.0.6", "5.0.8")


@dataclass(frozen=True)
class Capture:
    """One captured report from a Cassandra version; its file is named `command.moment.txt` or `.json`."""

    version: str
    file: str

    def __str__(self) -> str:
        return f"{self.version}/{self.file}"

    @property
    def command(self) -> str:
        return self.file.partition(".")[0]

    @property
    def is_json(self) -> bool:
        return self.file.endswith(".json")

    @property
    def module(self) -> Any:
        return importlib.import_module(f"collector.node.nodetool.reports.{self.command}")

    def parse(self, text: str) -> Report:
        report = self.module.parse(text)
        assert isinstance(report, Report)
        assert all(len(problem.splitlines()) == 1 for problem in report.problems)
        return report

    @property
    def text(self) -> str:
        return read(self)

    @property
    def original(self) -> Report:
        return parsed(self)


@cache
def read(capture: Capture) -> str:
    return (FOLDER / capture.version / "nodetool" / capture.file).read_text()


@cache
def parsed(capture: Capture) -> Report:
    return capture.parse(capture.text)


@cache
def expected(version: str) -> dict[str, Any]:
    """Return the expected contents of each file: values by series (parts joined by `|`), problems and properties.

    In the stored JSON, a file with the same contents as another has only the field `as`, which names the other; the
    returned contents are complete.
    """
    content = json.loads((FOLDER / version / "nodetool.expected.json").read_text())
    assert isinstance(content, dict)
    return {file: content[report["as"]] if "as" in report else report for file, report in content.items()}


def flat(values: dict[Series, Value]) -> dict[str, Value]:
    return {"|".join(series): value for series, value in values.items()}


CAPTURES = tuple(
    Capture(version, path.name)
    for version in VERSIONS
    for path in sorted((FOLDER / version / "nodetool").iterdir())
    if path.name.partition(".")[0] != "stderr"
)
# Captures that contain a complete report in English.
SOUND = tuple(
    capture for capture in CAPTURES if not {"de", "refused", "later", "vtable"} & set(capture.file.split("."))
)
STDERR = (FOLDER / "3.11.19" / "nodetool" / "stderr.txt").read_text()
"""The standard error of nodetool 3.11 when it runs on an unknown Java version; its report is still correct."""
