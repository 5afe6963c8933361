"""Tables with reordered, new or missing columns: values are located by their column labels."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.collector.garbling import check_all, check_reported
from tests.collector.node.nodetool.reported import SOUND, Capture
from tests.every import every

LABELS = {
    "tpstats": (
        ("Pool Name", "Active", "Pending", "Completed", "Blocked", "All time blocked"),
        ("Message type", "Dropped", "50%", "95%", "99%", "Max"),
    ),
    "tablehistograms": (("Percentile", "Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count"),),
    "proxyhistograms": (
        (
            *("Percentile", "CAS Read Latency", "CAS Write Latency", "View Write Latency"),
            *("Range Latency", "Read Latency", "Write Latency"),
        ),
    ),
    "gcstats": (
        (
            *("Interval (ms)", "Max GC Elapsed (ms)", "Total GC Elapsed (ms)", "Stdev GC Elapsed (ms)"),
            *("GC Reclaimed (MB)", "Collections", "Direct Memory Bytes"),
        ),
    ),
    "compactionstats": (("id", "compaction type", "keyspace", "table", "completed", "total", "unit", "progress"),),
    "status": (("--", "Address", "Load", "Tokens", "Owns (effective)", "Host ID", "Rack"),),
}
TABLED = [
    capture for capture in SOUND if capture.command in LABELS and not capture.is_json and ".idle." not in capture.file
]
# In the tables of these commands, cells contain spaces and are left-aligned under their labels.
ALWAYS_LEFT = {"compactionstats", "status"}
NUMBERS = ("0", "7", "1234", "1234567890123")
ONE_WORD = ("Shed", "Rejected(%)", "latency")
SEVERAL_WORDS = ("Shed rate", "Max Pending", "Old Completed", "Table total", "Local Read Latency", "My Host ID")

tables = st.sampled_from(TABLED)
randoms = st.integers(0, 2**32).map(Random)


@dataclass
class Table:
    """A table in a report: its range of lines, and its header and rows as lists of cells."""

    first: int
    last: int
    cells: list[list[str]]

    def text(self, *, left: bool) -> list[str]:
        widths = [max(map(len, column)) for column in zip(*self.cells, strict=True)]
        if left:
            return ["".join(f"{cell:<{width}} " for cell, width in zip(row, widths, strict=True)) for row in self.cells]
        return ["".join(f"{cell:>{width + 2}}" for cell, width in zip(row, widths, strict=True)) for row in self.cells]


def tables_of(capture: Capture) -> Iterator[Table]:
    lines = capture.text.split("\n")
    for number, line in enumerate(lines):
        for labels in LABELS[capture.command]:
            if set(labels[:2]) <= set(names := headed(line, labels)):
                last = number + 1
                while lines[last].strip() and not lines[last].lower().startswith(("active compaction", "datacenter")):
                    last += 1
                yield Table(
                    number, last, [names, *(split(capture, line, names, row) for row in lines[number + 1 : last])]
                )


def headed(line: str, labels: Sequence[str]) -> list[str]:
    longest_first = sorted(labels, key=len, reverse=True)
    return re.findall("|".join(map(re.escape, longest_first)), line)


def split(capture: Capture, header: str, names: Sequence[str], row: str) -> list[str]:
    if capture.command == "status":
        return re.split(r"\s{2,}", row.strip())
    starts = [re.search(rf"(?<!\w){re.escape(name)}", header) for name in names]
    begins = [match.start() for match in starts if match]
    if capture.command == "compactionstats":
        return [row[start:end].strip() for start, end in zip(begins, [*begins[1:], None], strict=True)]
    if len(row.split()) == len(names):
        return row.split()
    # A row with fewer words than labels contains the units, which are right-aligned under the labels.
    ends = [match.end() for match in starts if match]
    units = {match.end(): match[0] for match in re.finditer(r"\S+", row)}
    return [units.get(end, "") for end in ends]


def rebuilt(capture: Capture, change: "Change", random: Random, *, left: bool) -> str:
    lines = capture.text.split("\n")
    for table in reversed(list(tables_of(capture))):
        change(table, random)
        lines[table.first : table.last] = table.text(left=left or capture.command in ALWAYS_LEFT)
    return "\n".join(lines)


class Change:
    """Adds the columns `new` with values from `cells`, removes `gone` random columns, and shuffles the others."""

    def __init__(self, *, new: Sequence[str] = (), cells: Sequence[str] = NUMBERS, gone: int = 0) -> None:
        self.new, self.cells, self.gone = new, cells, gone

    def __call__(self, table: Table, random: Random) -> None:
        columns = [list(column) for column in zip(*table.cells, strict=True)]
        for label in self.new:
            # In a row of units, the first column is empty; the new column is left empty there too.
            cells = [random.choice(self.cells) if cell else "" for cell in columns[0][1:]]
            columns.insert(random.randint(0, len(columns)), [label, *cells])
        for _ in range(self.gone):
            columns.pop(random.randrange(len(columns)))
        random.shuffle(columns)
        table.cells = [list(row) for row in zip(*columns, strict=True)]


@every("capture", TABLED)
def test_all_tables_of_a_report_are_changed(capture: Capture) -> None:
    assert len(list(tables_of(capture))) == len(LABELS[capture.command])


@given(tables, randoms, st.booleans())
def test_the_order_of_columns_does_not_matter(capture: Capture, random: Random, left: bool) -> None:
    report = capture.parse(rebuilt(capture, Change(), random, left=left))
    check_all(capture, report)
    assert report.problems == capture.original.problems


@given(tables, randoms, st.booleans(), st.sampled_from(ONE_WORD))
def test_a_new_column_with_a_one_word_label_is_ignored(
    capture: Capture, random: Random, left: bool, label: str
) -> None:
    check_all(capture, capture.parse(rebuilt(capture, Change(new=[label]), random, left=left)))


@given(tables, randoms, st.booleans(), st.lists(st.sampled_from((*ONE_WORD, *SEVERAL_WORDS)), max_size=3))
def test_new_and_missing_columns_change_no_value(capture: Capture, random: Random, left: bool, new: list[str]) -> None:
    change = Change(new=new, cells=(*NUMBERS, "5 s", "1.25 MiB"), gone=random.randint(0, 2))
    check_reported(capture, capture.parse(rebuilt(capture, change, random, left=left)))
