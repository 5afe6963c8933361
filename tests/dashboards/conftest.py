"""Grafana's SDK wants Python 3.11: before that nobody makes boards anew, and they are used as they are committed."""

import sys

collect_ignore = [] if sys.hexversion >= 0x030B0000 else ["test_current.py"]
