"""Nodetool's reports, one file per command: pure functions from what it printed to values.

Each file has `ARGUMENTS` (how nodetool is best called), `METRICS` (those that no source has) and `parse`, which
takes the output of any version from 3.11 on, in JSON too where there is such a thing. It goes by labels, never
by position, and raises nothing: what is not understood is absent, and `Report.problems` says why.
"""
