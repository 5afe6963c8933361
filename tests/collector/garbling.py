"""Garbles or reformats nodetool reports, and checks the values that are read from them."""

import re
from random import Random

from collector.node.nodetool.reports.report import Report
from tests.collector.node.nodetool.reported import STDERR, Capture

# Lines that stay in place when the others are reordered. The others are shuffled only within the blocks between these
# lines, because a line under the wrong heading would look valid.
FIXED = {
    "tablestats": r"Total|-{4}|Keyspace|\s*Table|\s*$",
    "tpstats": r"Pool Name|Message type|Latencies|\s*$",
    "tablehistograms": r".* histograms$|Percentile|\s*\(micros\)|No SSTables|\s*$",
    "proxyhistograms": r".* histograms$|Percentile|\s*\(micros\)|\s*$",
    "compactionstats": r"pending tasks:|id |active|Active|\s*$",
    "gcstats": r".",
    "info": r"\Z.",
    "netstats": r"Read Repair|Pool Name|\s*$",
    "status": r"Datacenter|=|Status|\|/|--|\s*$",
}
# Patterns of truncated reports that look complete, because the number of pools, messages, keyspaces and running
# compactions varies.
LOOKS_COMPLETE = {
    "tpstats": re.compile(r".*^Message type.*\n", re.DOTALL | re.MULTILINE),
    "tablestats": re.compile(r".*\n-{4,}\n", re.DOTALL),
    "compactionstats": re.compile(
        r"(?!.*compaction type)(pending tasks:.*\n\n|.*^data compacted.*\n)", re.DOTALL | re.MULTILINE
    ),
}
NOISE = (
    "Picked up JAVA_TOOL_OPTIONS: -Xmx64m",
    "Picked up _JAVA_OPTIONS: -Da=1 -Db=2 -Dc=3",
    "WARN  [main] 2026-01-01 10:00:00,123 YamlConfigurationLoader.java:142 - Read 12 of 34: 5 are 6.70 ms old",
    "WARN  10:00:00,123 Only 12.5 GiB free across all data volumes. Consider adding more capacity",
    "OpenJDK 64-Bit Server VM warning: Options -Xverify:none and -noverify were deprecated in JDK 13",
    "Caused by: java.net.ConnectException: Connection refused (Connection refused)",
    "error: null",
    "-- StackTrace --",
    "\t... 12 more",
    *STDERR.splitlines(),
)
_NUMBER = re.compile(r"(?<![\w.:-])[0-9]+(?:\.[0-9]+)?(?![\w.:-])")
_BLANKS = re.compile(r"[ \t]+")


def check_sound(capture: Capture, report: Report) -> None:
    """Assert that no value differs from the original report."""
    original = capture.original
    for series, value in report.values.items():
        assert series in original.values, series
        assert (type(value), value) == (type(original.values[series]), original.values[series]), series
    assert report.properties.items() <= original.properties.items()


def check_reported(capture: Capture, report: Report) -> None:
    """Assert that no value differs from the original report, and that missing values are reported as a problem."""
    check_sound(capture, report)
    if report.values != capture.original.values or report.properties != capture.original.properties:
        assert report.problems


def check_all(capture: Capture, report: Report) -> None:
    """Assert that all values of the original report are parsed."""
    assert (report.values, report.properties) == (capture.original.values, capture.original.properties)


def reordered(capture: Capture, random: Random) -> str:
    """Return the report with the lines of each block shuffled."""
    lines: list[str] = []
    block: list[str] = []
    for line in [*capture.text.splitlines(keepends=True), ""]:
        if line and not re.match(FIXED[capture.command], line):
            block.append(line)
        else:
            random.shuffle(block)
            lines += [*block, line]
            block = []
    return "".join(lines)


def respaced(text: str, random: Random) -> str:
    """Return the text with different whitespace between and around words; empty lines are unchanged."""
    lines = [_BLANKS.sub(lambda _: random.choice((" ", "  ", "\t", "      ")), line) for line in text.split("\n")]
    return "\n".join(random.choice((line, line.strip(), f"  {line}")) if line.strip() else line for line in lines)


def localised(text: str, point: str, group: str) -> str:
    """Return the text with numbers in another locale's format."""

    def formatted(match: re.Match[str]) -> str:
        integer, _, fraction = match[0].partition(".")
        if group and len(integer) > 3:
            integer = f"{int(integer):,}".replace(",", group)
        return f"{integer}{point}{fraction}" if fraction else integer

    return _NUMBER.sub(formatted, text)


def digits(text: str) -> str:
    """Return the text with its numbers written in Arabic-Indic digits."""
    return _NUMBER.sub(lambda match: match[0].translate({48 + digit: 0x660 + digit for digit in range(10)}), text)


def renumbered(line: str, random: Random) -> str:
    """Return the line with one of its numbers replaced, or unchanged if it has none."""
    numbers = list(_NUMBER.finditer(line))
    if not numbers:
        return line
    number = random.choice(numbers)
    replacement = re.sub("[0-9]", lambda digit: str((int(digit[0]) + random.randint(0, 9)) % 10), number[0])
    return f"{line[: number.start()]}{replacement}{line[number.end() :]}"
