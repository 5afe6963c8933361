"""A comparison of runs as a table of at most 100 characters per line, as JSON, and as JUnit XML for build servers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from xml.etree import ElementTree as Xml

from collector.printable import count_text, one_line, printable_json, shortened
from exporters.results.comparison.comparison import Comparison, Report

WIDTHS = (33, 10, 10, 8, 18, 6)
"""The widths of all columns but the last, which states whether the difference is significant."""
HEADERS = ("", "A", "B", "diff", "95% interval", "effect", "differs")
WITHIN_RUNS = "within-run variation only: the intervals do not include the variation between runs"
MAX_CHARS = 100
NOT_CORRECTED = "no*"
"""The cell of a difference that only the correction for several comparisons makes insignificant."""


def comparison_lines(report: Report) -> Iterator[str]:
    yield f"A: {_runs_text(report.a)}"
    yield f"B: {_runs_text(report.b)}"
    if report.is_within_runs:
        yield WITHIN_RUNS
    phase = None
    for comparison in report.comparisons:
        if comparison.phase != phase:
            phase = comparison.phase
            yield ""
            yield _line((f"phase {one_line(phase)}"[: WIDTHS[0]], *HEADERS[1:]))
        name, *cells = comparison_cells(comparison)
        yield _line((shortened(name, WIDTHS[0]), *cells))
    notes = correction_notes(report.comparisons)
    if notes:
        yield ""
    yield from notes


def _runs_text(names: Sequence[str]) -> str:
    return one_line(f"{count_text(len(names), 'run')} ({', '.join(names)})")[: MAX_CHARS - 3]


def _line(cells: Sequence[str]) -> str:
    texts = [
        cells[0].ljust(WIDTHS[0]),
        *(cell.rjust(width) for cell, width in zip(cells[1:], WIDTHS[1:], strict=False)),
    ]
    return " ".join((*texts, cells[-1])).rstrip()


def comparison_cells(comparison: Comparison) -> tuple[str, ...]:
    """Return the cells below HEADERS."""
    difference = comparison.difference
    interval = difference.reason or "-"
    if difference.low is not None and difference.high is not None:
        interval = f"{_percent(difference.low)} to {_percent(difference.high)}"
    return (
        " ".join(filter(None, (comparison.column, comparison.bound))),
        _number(difference.value_a),
        _number(difference.value_b),
        "-" if difference.relative is None else _percent(difference.relative),
        interval,
        "-" if difference.effect is None else _bounded(f"{difference.effect:+.1f}", WIDTHS[5]),
        _differs(comparison),
    )


def _differs(comparison: Comparison) -> str:
    if comparison.difference.p is None:
        return "-"
    if comparison.is_significant:
        return "yes"
    return NOT_CORRECTED if comparison.is_decided_by_correction else "no"


def correction_notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the lines that explain NOT_CORRECTED; [] if no comparison has this cell."""
    if not any(comparison.is_decided_by_correction for comparison in comparisons):
        return []
    number = sum(comparison.difference.p is not None for comparison in comparisons)
    return [
        f"{NOT_CORRECTED}: significant on its own, but not after the correction for {number} comparisons: some of so",
        "many intervals exclude 0 by chance (hint: more or longer runs decide it)",
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def _percent(share: float) -> str:
    """Return a relative difference as a percentage of at most seven characters."""
    return f"{100 * share:+.1f}%" if abs(share) < 10 else f"{100 * share:+.0f}%" if abs(share) < 1000 else "huge"


def _bounded(text: str, width: int) -> str:
    return text if len(text) <= width else text.partition(".")[0][:width]


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


def junit_xml(report: Report) -> bytes:
    """Return a test suite with a case per condition or, if there are none, per comparison.

    A condition that is met or cannot be checked is a failure. A comparison is never a failure, but is skipped if it
    has no test.
    """
    suite = Xml.Element("testsuite", name="casstat compare")
    for checked in report.conditions:
        case = Xml.SubElement(suite, "testcase", classname="casstat.compare", name=one_line(checked.condition.text))
        if checked.failures:
            message = one_line("; ".join(checked.failures))
            Xml.SubElement(case, "failure", message=message).text = "\n".join(map(one_line, checked.failures))
    if not report.conditions:
        for comparison in report.comparisons:
            _add(suite, comparison)
    for name, tag in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
        suite.set(name, str(len(suite.findall(tag))))
    suite.set("errors", "0")
    text: bytes = Xml.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add(suite: Xml.Element, comparison: Comparison) -> None:
    case = Xml.SubElement(
        suite, "testcase", classname=f"casstat.compare.{one_line(comparison.phase)}", name=comparison.column
    )
    difference = comparison.difference
    if difference.p is None:
        Xml.SubElement(case, "skipped", message=difference.reason or "no test")
        return
    correction = " after the correction for several comparisons" if comparison.is_decided_by_correction else ""
    result = "significant" if comparison.is_significant else f"not significant{correction}"
    Xml.SubElement(case, "system-out").text = f"A {difference.value_a:.6g}, B {difference.value_b:.6g}: {result}"
