"""`nodetool netstats`: what the node is doing, and its read repairs."""

import re

from collector.model.metric import Metric
from collector.nodetool.reports.report import Draft, Report, unique, whole

METRICS: tuple[Metric, ...] = ()
ARGUMENTS = ("netstats",)
FILLS = frozenset(
    {
        "cassandra_operation_mode",
        "cassandra_read_repairs_attempted_total",
        "cassandra_read_repairs_background_total",
        "cassandra_read_repairs_blocking_total",
    }
)

_MODE = re.compile(r"[A-Z][A-Z_]*")
_REPAIRS = {
    "Attempted": "cassandra_read_repairs_attempted_total",
    "Mismatch (Blocking)": "cassandra_read_repairs_blocking_total",
    "Mismatch (Background)": "cassandra_read_repairs_background_total",
}


def parse(text: str) -> Report:
    """Return the mode, and read repairs as far as the node has started."""
    draft = Draft(text)
    told = unique(draft.lines, ("Mode", *_REPAIRS), draft)
    if "Mode" in told:
        draft.take(("cassandra_operation_mode",), _mode, told["Mode"], "Mode")
    for label, name in _REPAIRS.items():
        if label in told:
            draft.take((name,), whole, told[label], label)
    return draft.report()


def _mode(raw: object) -> str:
    if isinstance(raw, str) and _MODE.fullmatch(raw):
        return raw
    raise ValueError("is no mode")
