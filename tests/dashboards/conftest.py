"""Grafana's SDK requires Python 3.11. Earlier versions use the committed dashboards and cannot regenerate them."""

import sys

collect_ignore = [] if sys.hexversion >= 0x030B0000 else ["test_json_current.py"]
