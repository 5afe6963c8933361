"""Reads numbers with a decimal point or a decimal comma, and refuses those that could be read in two ways."""

import re

from collector.load_results.client_format import ClientFormatError
from collector.printable import one_line

_NUMBER = re.compile(r"[0-9]{1,19}(?:(?P<mark>[.,])[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
# The mark in such a number may also be a thousands separator.
_DOUBTFUL = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_MIN_DIGITS_OF_THOUSANDS = 4


class DecimalMarks:
    """The decimal mark of a file, deduced from its numbers.

    A file that separates columns by commas has decimal points. In other files, a number such as 1,234 is a decimal
    number only if another number shows that the file does not separate thousands.
    """

    def __init__(self, delimiter: str) -> None:
        self._has_comma_columns = delimiter == ","
        self._mark = ""
        self._doubtful = ""
        self._has_no_thousands = False

    def number(self, text: str) -> float:
        """Return a number that is not negative. Raises ValueError."""
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise ValueError(f"not a number: {one_line(text) or '(empty)'}")
        mark = match["mark"]
        if mark == "," and self._has_comma_columns:
            raise ValueError(
                f"a comma in the number {text} (hint: omit it if it separates thousands; with decimal commas, separate "
                "columns by semicolons)"
            )
        if mark and self._mark not in ("", mark):
            raise ValueError(f"both decimal points and decimal commas in one file: {text}")
        self._mark = mark or self._mark
        if _DOUBTFUL.fullmatch(text) and not self._has_comma_columns:
            self._doubtful = self._doubtful or text
        elif mark or len(text) >= _MIN_DIGITS_OF_THOUSANDS:
            self._has_no_thousands = True
        return float(text.replace(",", "."))

    def check(self) -> None:
        """Raise ClientFormatError if the numbers of the file could be read in two ways."""
        if self._doubtful and not self._has_no_thousands:
            raise ClientFormatError(
                f"ambiguous number {self._doubtful}: decimal mark or thousands separator (hint: add or remove decimals)"
            )
