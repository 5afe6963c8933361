"""A comparison of runs as JSON."""

import json
from dataclasses import asdict

from collector.printable import printable_json
from exporters.comparison.comparison_report import Report


def comparison_json(report: Report) -> str:
    """Return a comparison as one line of JSON; differences are shares of A's value."""
    content = {
        "a": list(report.a),
        "b": list(report.b),
        "within_run_variation_only": report.is_within_runs,
        "warnings": list(report.warnings),
        "comparisons": [
            {
                "phase": one.phase,
                "column": one.column,
                "bound": one.bound,
                **asdict(one.difference),
                "adjusted_p": one.adjusted_p,
                "significant": one.is_significant,
            }
            for one in report.comparisons
        ],
        "conditions": [
            {"text": one.condition.text, "met": bool(one.failures), "reasons": list(one.failures)}
            for one in report.conditions
        ],
    }
    return printable_json(json.dumps(content, allow_nan=False))
