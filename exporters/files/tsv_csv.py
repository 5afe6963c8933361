"""Tables as TSV and CSV files, each with one header line."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

from exporters.line.formulas import Cell

# Characters that would end a TSV cell or row become spaces, because IANA's text/tab-separated-values has no quoting.
_ENDS = "\t\n\r\x0b\x0c\x85\u2028\u2029"
_TSV = str.maketrans(dict.fromkeys(_ENDS, " "))
_UNSAFE = re.compile(f"[{_ENDS}]")
# The characters that TSV replaces or CSV quotes.
_SPECIAL = re.compile(f'[{_ENDS},"]')

CSV_LINE_END = "\r\n"
"""The end of a line as `csv` writes it, which is that of RFC 4180."""
Text = tuple[str, str]
"""The same rows as TSV and as CSV."""
SUFFIXES = (".tsv", ".csv")


def header_text(header: Sequence[str]) -> Text:
    """Return the header line as TSV and as CSV."""
    return rows_text(header, [dict(zip(header, header, strict=True))])


def rows_text(header: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> Text:
    """Return the rows as TSV and as CSV, one line each; absent values become empty cells."""
    tsv, out = io.StringIO(), io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        cells = _texts(header, row)
        writer.writerow(cells)
        tsv.write(_tsv(cells))
        tsv.write("\n")
    return tsv.getvalue(), out.getvalue()


def cells_texts(header: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> list[Text]:
    """Return the cells of each row as TSV and as CSV, without the end of the line."""
    out = io.StringIO()
    writer = csv.writer(out)
    texts = []
    for row in rows:
        cells = _texts(header, row)
        if not _SPECIAL.search("".join(cells)):
            texts.append(("\t".join(cells), ",".join(cells)))
            continue
        # A row with a single empty cell would be quoted, so another cell is written and removed.
        writer.writerow([*cells, ""])
        texts.append((_tsv(cells), out.getvalue().removesuffix(f",{CSV_LINE_END}")))
        out.seek(0)
        out.truncate()
    return texts


def _texts(header: Sequence[str], row: Mapping[str, Cell]) -> list[str]:
    return [
        "" if (cell := row.get(column)) is None else cell if isinstance(cell, str) else repr(cell) for column in header
    ]


def _tsv(cells: Sequence[str]) -> str:
    return "\t".join(cells if not _UNSAFE.search("".join(cells)) else [cell.translate(_TSV) for cell in cells])
