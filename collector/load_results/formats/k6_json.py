"""k6's JSON output (`k6 run --out json=FILE`): one object per line, which declares a metric or is a sample of it."""

import json
import re
from pathlib import Path

from collector.load_results.client_format import CommandTimes, Format, GrowingResult, Options
from collector.load_results.client_result import ClientResult
from collector.load_results.k6_samples import HTTP, METRICS, K6Samples
from collector.load_results.parsing.field_values import decimal
from collector.load_results.parsing.text_lines import GrowingLines, read_lines

NAME = "k6-json"
_METRIC = re.compile(rf'"metric":\s*"(?:{"|".join(sorted(METRICS))})"')
_FIRST_LINE = re.compile(r'\A\s*\{(?=.*"type":\s*"(?:Metric|Point)")(?=.*"metric":\s*").*"data":\s*\{')


def read(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    lines = _Lines()
    notes = read_lines(path, lines.add)
    return lines.samples.result(NAME, path.name, lines.runs, notes)


def growing(_head: bytes, _options: Options) -> GrowingResult:
    lines = _Lines()
    return GrowingLines(lines.add, lines.samples.take)


FORMATS = (Format(NAME, _FIRST_LINE, read, growing),)


class _Lines:
    def __init__(self) -> None:
        self.samples = K6Samples()
        self.runs = 0

    def add(self, line: str) -> None:
        """Add a line. Raises one of MALFORMED."""
        text = line.strip()
        if not (text.startswith("{") and text.endswith("}")):
            raise ValueError("not a JSON object")
        if not _METRIC.search(text):
            return
        content = json.loads(text)
        metric, kind, data = content["metric"], content["type"], content["data"]
        if kind == "Point" and metric in METRICS:
            tags = {str(tag): str(value) for tag, value in (data.get("tags") or {}).items()}
            self.samples.add(metric, str(data["time"]), decimal(data["value"]), tags)
        # k6 declares each metric once.
        self.runs += kind == "Metric" and metric == HTTP
