"""The file with the summaries of a run's phases, in the run's directory."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from collector.file_access import read_whole, write_json
from collector.runs.run_file import is_finite
from exporters.results.summary.phase_summary import PhaseSummary

SUMMARY_FILE = "summary.json"
MAX_SUMMARY_BYTES = 16 << 20


def write_summaries(folder: Path, summaries: Sequence[PhaseSummary]) -> None:
    """Write the summaries of a run's phases to its directory. Raises OSError."""
    write_json(folder / SUMMARY_FILE, [asdict(summary) for summary in summaries])


def read_summaries(folder: Path) -> list[PhaseSummary]:
    """Return the summaries of a run's phases; none if they are missing or malformed."""
    try:
        content = json.loads(read_whole(folder / SUMMARY_FILE, MAX_SUMMARY_BYTES))
        # Earlier versions wrote neither client hosts nor missing intervals. A count may be 60.0.
        summaries = msgspec.convert(content, list[PhaseSummary], strict=False)
    except (OSError, ValueError, RecursionError):
        return []
    cells = [cell for summary in summaries for cell in summary.values.values()]
    return summaries if all(cell is None or isinstance(cell, str) or is_finite(cell) for cell in cells) else []
