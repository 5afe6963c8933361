"""A captured report of latte, and reports that are read in a fraction of its time."""

import json
from functools import cache
from pathlib import Path

from hdrh.histogram import HdrHistogram

LATTE = Path(__file__).parents[2] / "captures" / "clients" / "latte-read-3node.json"
START_TIME = "2026-11-21T07:12:54.442135362Z"
OPERATIONS = 59_482
"""The operations of the captured report, in 60 samples."""


@cache
def _content() -> str:
    """Return the captured report with the same numbers of operations, but one latency for all of them."""
    content = json.loads(LATTE.read_text())
    for part in (content["result"], *content["result"]["log"]):
        histogram = HdrHistogram(1, 1_000_000_000, 3)
        histogram.record_value(300_000, part["cycle_count"])
        for latency in part["cycle_latency_by_fn"].values():
            latency["histogram"] = histogram.encode().decode()
    return json.dumps(content)


def report_text(number: int = 0, samples: int = 60) -> str:
    """Return a report; reports with different numbers are different results."""
    content = json.loads(_content())
    del content["result"]["log"][samples:]
    content["conf"]["tags"] = [str(number)]
    # With the same times, they would have the same operations.
    content["result"]["start_time"] = START_TIME.replace("54.4", f"54.{4 + number}")
    return json.dumps(content)
