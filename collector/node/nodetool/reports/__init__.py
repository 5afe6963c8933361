"""Parsers for nodetool's reports, one module per command: pure functions that convert output to values.

Each parser has `ARGUMENTS` (the arguments to run nodetool with), `FILLS` (the metrics it provides), `parse`, and
`METRICS` if no MBean provides some of them. `parse` accepts the output of every version from 3.11 on, as text and,
where nodetool supports it, as JSON. It finds values by their labels, not by their order, and never raises an
exception: a malformed value is absent, and `Report.problems` contains the reason.
"""
