"""Skips the tests that need Grafana's SDK on Python versions before 3.11, which it does not support."""

import sys

collect_ignore = [] if sys.hexversion >= 0x030B0000 else ["test_json_current.py"]
