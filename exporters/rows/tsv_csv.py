"""Tables as TSV and CSV files, each with one header line."""

import re
from collections.abc import Iterable, Mapping, Sequence

from exporters.rows.formulas import Cell

# Characters that would end a TSV cell or row become spaces, because IANA's text/tab-separated-values has no quoting.
_ENDS = "\t\n\r\x0b\x0c\x85\u2028\u2029"
_TSV = str.maketrans(dict.fromkeys(_ENDS, " "))
_UNSAFE = re.compile(f"[{_ENDS}]")
# The characters that TSV replaces or CSV quotes.
_SPECIAL = re.compile(f'[{_ENDS},"]')
_EMPTY = '""'
_QUOTED = re.compile('[,"\r\n]')

CSV_LINE_END = "\r\n"
"""The end of a line in RFC 4180."""
Text = tuple[str, str]
"""The same rows as TSV and as CSV."""
SUFFIXES = (".tsv", ".csv")


def header_text(header: Sequence[str]) -> Text:
    """Return the header line as TSV and as CSV."""
    return rows_text(header, [dict(zip(header, header, strict=True))])


def rows_text(header: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> Text:
    """Return the rows as TSV and as CSV, one line each; absent values become empty cells."""
    texts = cells_texts(header, rows)
    # The line of a single empty cell would be an empty one, which readers skip.
    return "".join(f"{tsv}\n" for tsv, _ in texts), "".join(f"{line or _EMPTY}{CSV_LINE_END}" for _, line in texts)


def cells_texts(header: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> list[Text]:
    """Return the cells of each row as TSV and as CSV, without the end of the line."""
    texts = []
    for row in rows:
        cells = _texts(header, row)
        is_plain = not _SPECIAL.search("".join(cells))
        texts.append(("\t".join(cells), ",".join(cells)) if is_plain else (_tsv(cells), ",".join(map(_quoted, cells))))
    return texts


def _quoted(cell: str) -> str:
    # Python's csv module refuses NUL before 3.11.
    return '"{}"'.format(cell.replace('"', '""')) if _QUOTED.search(cell) else cell


def _texts(header: Sequence[str], row: Mapping[str, Cell]) -> list[str]:
    return [
        "" if (cell := row.get(column)) is None else cell if isinstance(cell, str) else repr(cell) for column in header
    ]


def _tsv(cells: Sequence[str]) -> str:
    return "\t".join(cells if not _UNSAFE.search("".join(cells)) else [cell.translate(_TSV) for cell in cells])
