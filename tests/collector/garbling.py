"""Ways in which a report may reach a parser other than it was printed, and what must hold for all of them."""

import re
from random import Random

from collector.nodetool.reports.report import Report
from tests.collector.nodetool.reported import STDERR, Capture

# What stands where it is, when lines are put into another order. A line that is moved under another heading cannot
# be told from one that belongs there, so lines change places only between these.
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
# What may be cut off at the end of a line, or taken out, and leave a report that could be a whole one.
COULD_BE_WHOLE = {
    # As many pools and messages as there are, keyspaces, compactions that run.
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
    """No value may be another than that of the report as it was printed."""
    whole = capture.whole
    for series, value in report.values.items():
        assert series in whole.values, series
        assert (type(value), value) == (type(whole.values[series]), whole.values[series]), series
    assert report.properties.items() <= whole.properties.items()


def check_told(capture: Capture, report: Report) -> None:
    """What is missing beside must have a reason."""
    check_sound(capture, report)
    if report.values != capture.whole.values or report.properties != capture.whole.properties:
        assert report.problems


def check_all(capture: Capture, report: Report) -> None:
    """Everything must still be understood."""
    assert (report.values, report.properties) == (capture.whole.values, capture.whole.properties)


def reordered(capture: Capture, random: Random) -> str:
    """Return the report with its lines in another order, within each block."""
    found: list[str] = []
    block: list[str] = []
    for line in [*capture.text.splitlines(keepends=True), ""]:
        if line and not re.match(FIXED[capture.command], line):
            block.append(line)
        else:
            random.shuffle(block)
            found += [*block, line]
            block = []
    return "".join(found)


def respaced(text: str, random: Random) -> str:
    """Return the text with other blanks between its words, but for the empty lines."""
    lines = [_BLANKS.sub(lambda _: random.choice((" ", "  ", "\t", "      ")), line) for line in text.split("\n")]
    return "\n".join(random.choice((line, line.strip(), f"  {line}")) if line.strip() else line for line in lines)


def localised(text: str, point: str, group: str) -> str:
    """Return the text with numbers as another language writes them."""

    def other(match: re.Match[str]) -> str:
        whole, _, rest = match[0].partition(".")
        if group and len(whole) > 3:
            whole = f"{int(whole):,}".replace(",", group)
        return f"{whole}{point}{rest}" if rest else whole

    return _NUMBER.sub(other, text)


def digits(text: str) -> str:
    """Return the text with the digits of Arabic in its numbers."""
    return _NUMBER.sub(lambda match: match[0].translate({48 + digit: 0x660 + digit for digit in range(10)}), text)


def renumbered(line: str, random: Random) -> str:
    """Return the line with another number in the place of one of its own, if it has any."""
    numbers = list(_NUMBER.finditer(line))
    if not numbers:
        return line
    one = random.choice(numbers)
    other = re.sub("[0-9]", lambda digit: str((int(digit[0]) + random.randint(0, 9)) % 10), one[0])
    return f"{line[: one.start()]}{other}{line[one.end() :]}"
