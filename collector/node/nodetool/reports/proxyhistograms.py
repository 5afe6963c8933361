"""`nodetool proxyhistograms`: decaying percentiles of coordinated requests."""

import re

from collector.node.nodetool.reports.report import Draft, Report
from collector.node.nodetool.reports.tablehistograms import histograms, latencies

ARGUMENTS = ("proxyhistograms",)

_LATENCY = "cassandra_client_request_decayed_seconds"
FILLS = frozenset({_LATENCY})
_HEADING = re.compile("proxy histograms")
_OPERATIONS = {
    "Read Latency": "Read",
    "Write Latency": "Write",
    "Range Latency": "RangeSlice",
    "CAS Read Latency": "CASRead",
    "CAS Write Latency": "CASWrite",
    "View Write Latency": "ViewWrite",
}


def parse(text: str) -> Report:
    """Return the percentiles of each operation; operations without recent requests are absent."""
    draft = Draft(text)
    for histogram in histograms(draft, _HEADING, _OPERATIONS):
        for column, operation in _OPERATIONS.items():
            latencies(draft, histogram, column, (_LATENCY, operation))
    return draft.report()
