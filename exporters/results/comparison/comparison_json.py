"""A comparison of runs as JSON."""

import json
from dataclasses import asdict

from collector.printable import printable_json
from exporters.results.comparison.comparison_report import Report


def comparison_json(report: Report) -> str:
    """Return a comparison as one line of JSON; differences are relative to A's value."""
    content = {
        "a": list(report.a),
        "b": list(report.b),
        "within_run_variation_only": report.is_within_runs,
        "warnings": list(report.warnings),
        "comparisons": [
            {
                "phase": comparison.phase,
                "column": comparison.column,
                "bound": comparison.bound,
                **asdict(comparison.difference),
                "adjusted_p": comparison.adjusted_p,
                "significant": comparison.is_significant,
                "significant_without_correction": comparison.is_significant or comparison.is_decided_by_correction,
            }
            for comparison in report.comparisons
        ],
        "conditions": [
            {"text": checked.condition.text, "met": bool(checked.failures), "reasons": list(checked.failures)}
            for checked in report.conditions
        ],
    }
    return printable_json(json.dumps(content, allow_nan=False))
