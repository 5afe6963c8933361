"""A comparison of runs as JUnit XML, for build servers."""

from xml.etree import ElementTree as Xml

from collector.printable import one_line
from exporters.results.comparison.comparison import Comparison
from exporters.results.comparison.comparison_report import Report


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
    """Add the case of a comparison."""
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
