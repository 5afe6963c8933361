"""The parts of a report, independent of its format."""

from collections.abc import Sequence
from dataclasses import dataclass

from exporters.report.charts.chart import Chart


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `is_problem` is true if it states that something failed or is missing."""

    text: str
    is_problem: bool = False


@dataclass(frozen=True)
class Command:
    """A command line."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table; its first `text_columns` columns are left-aligned, and its first column has the row headers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


Block = Paragraph | Command | Table | Chart


@dataclass(frozen=True)
class Section:
    """A section with a title; a section without blocks is not shown."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """A report: its title, a line below the title, and its sections."""

    title: str
    subtitle: str
    sections: Sequence[Section]
