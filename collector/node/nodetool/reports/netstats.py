"""`nodetool netstats`: the node's operation mode and its read repairs."""

import re

from collector.node.nodetool.reports.report import Draft, Report, unique, whole

ARGUMENTS = ("netstats",)

_MODE = "cassandra_operation_mode"
_MODE_TEXT = re.compile(r"[A-Z][A-Z_]*")
_REPAIRS = {
    "Attempted": "cassandra_read_repairs_attempted_total",
    "Mismatch (Blocking)": "cassandra_read_repairs_blocking_total",
    "Mismatch (Background)": "cassandra_read_repairs_background_total",
}
FILLS = frozenset({_MODE, *_REPAIRS.values()})


def parse(text: str) -> Report:
    """Return the operation mode and, once the node has started, the numbers of read repairs."""
    draft = Draft(text)
    values = unique(draft.lines, ("Mode", *_REPAIRS), draft)
    if "Mode" in values:
        draft.take((_MODE,), _mode, values["Mode"], "Mode")
    for label, name in _REPAIRS.items():
        if label in values:
            draft.take((name,), whole, values[label], label)
    return draft.report()


def _mode(raw: object) -> str:
    if isinstance(raw, str) and _MODE_TEXT.fullmatch(raw):
        return raw
    raise ValueError("is not an operation mode")
