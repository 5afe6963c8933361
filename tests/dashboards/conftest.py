"""Skips the tests that need Grafana's SDK on Python versions that the SDK does not support (before 3.11)."""

import sys

collect_ignore = [] if sys.hexversion >= 0x030B0000 else ["test_json_current.py"]
