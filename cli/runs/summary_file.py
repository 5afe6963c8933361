"""The file with the summaries of a run's phases, in the run's directory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from collector.file_access import read_whole, write_json
from collector.runs.run_file import is_finite
from exporters.results.summary.phase_summary import Peak, PhaseSummary, coverage_of_content
from exporters.rows.columns import Cell

SUMMARY_FILE = "summary.json"
MAX_SUMMARY_BYTES = 16 << 20


def write_summaries(folder: Path, summaries: Sequence[PhaseSummary]) -> None:
    """Write the summaries of a run's phases to its directory. Raises OSError."""
    write_json(folder / SUMMARY_FILE, [asdict(summary) for summary in summaries])


def read_summaries(folder: Path) -> list[PhaseSummary]:
    """Return the summaries of a run's phases; none if they are missing or malformed."""
    try:
        content = json.loads(read_whole(folder / SUMMARY_FILE, MAX_SUMMARY_BYTES))
        return [
            PhaseSummary(
                str(phase["name"]),
                float(phase["begin_s"]),
                float(phase["end_s"]),
                {str(name): _cell(value) for name, value in phase["values"].items()},
                _peaks(phase["peaks"]),
                # Earlier versions neither sampled client hosts nor stated missing intervals.
                _peaks(phase.get("client_peaks", {})),
                tuple(map(str, phase.get("client_notes", ()))),
                coverage_of_content(phase.get("incomplete", ())),
                {str(name): str(text) for name, text in phase.get("settings", {}).items()},
            )
            for phase in content
        ]
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError):
        return []


def _cell(value: Any) -> Cell:
    """Return a value in a summary. Raises TypeError if it is neither a finite number nor a string nor None."""
    if value is None or isinstance(value, str) or is_finite(value):
        return value
    raise TypeError


def _peaks(content: Mapping[str, Any]) -> dict[str, Peak]:
    """Return the peaks in a summary. Raises KeyError, TypeError, ValueError, AttributeError and OverflowError."""
    return {
        str(name): Peak(float(peak["value"]), str(peak["node"]), float(peak["time_s"]), str(peak.get("process", "")))
        for name, peak in content.items()
    }
