"""What real nodes' nodetool printed, and what of it is to be understood."""

import importlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from collector.model.metric import Series, Value
from collector.nodetool.reports.report import Report
from tests.collector.captures import FOLDER

VERSIONS = ("3.11.19", "4.0.17", "4.1.9", "5.0.6", "5.0.8")


@dataclass(frozen=True)
class Capture:
    """One report: `command.moment.txt` or `.json` of a version."""

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
        return importlib.import_module(f"collector.nodetool.reports.{self.command}")

    def parse(self, text: str) -> Report:
        report = self.module.parse(text)
        assert isinstance(report, Report)
        assert all(len(problem.splitlines()) == 1 for problem in report.problems)
        return report

    @property
    def text(self) -> str:
        return read(self)

    @property
    def whole(self) -> Report:
        return parsed(self)


@cache
def read(capture: Capture) -> str:
    return (FOLDER / capture.version / "nodetool" / capture.file).read_text()


@cache
def parsed(capture: Capture) -> Report:
    return capture.parse(capture.text)


@cache
def expected(version: str) -> dict[str, Any]:
    """Return what is checked in, by file: values by series (its parts joined by `|`), problems, words said.

    Where two files say the same, the second names the first.
    """
    found = json.loads((FOLDER / version / "nodetool.expected.json").read_text())
    assert isinstance(found, dict)
    return {file: found[each["as"]] if "as" in each else each for file, each in found.items()}


def flat(values: dict[Series, Value]) -> dict[str, Value]:
    return {"|".join(series): value for series, value in values.items()}


CAPTURES = tuple(
    Capture(version, path.name)
    for version in VERSIONS
    for path in sorted((FOLDER / version / "nodetool").iterdir())
    if path.name.partition(".")[0] != "stderr"
)
# Those of English with a report in them: the rest is kept to see that nothing is made of it.
SOUND = tuple(each for each in CAPTURES if not {"de", "refused", "later", "vtable"} & set(each.file.split(".")))
STDERR = (FOLDER / "3.11.19" / "nodetool" / "stderr.txt").read_text()
"""What the nodetool of 3.11 prints to its standard error on a Java that it does not know; it works nevertheless."""
