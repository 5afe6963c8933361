"""A parameter with several values, such as `concurrency=1,5,10` or `batch=100..1000:100`."""

import re
from collections.abc import Iterator
from decimal import Decimal

from cli.parameters.placeholders import NAME
from collector.printable import one_line
from collector.runs.parameter_sweep import SweptParameter

MAX_VALUES = 10_000
MAX_VALUE_CHARS = 200
EXAMPLES = "NAME=1,5,10 or NAME=100..1000:100"
# Sums of such numbers are exact in decimal arithmetic, which has 28 digits.
_NUMBER = r"[-+]?\d{1,12}(?:\.\d{1,12})?"
_RANGE = re.compile(rf"(?P<first>{_NUMBER})\.\.(?P<last>{_NUMBER})(?::(?P<step>{_NUMBER}))?", re.ASCII)
_BEGINS_LIKE_A_RANGE = re.compile(r"[-+]?[\d.]*\d\.\.", re.ASCII)


class ParameterError(ValueError):
    """A parameter is malformed; the message is one line."""


def parameter_of(text: str) -> SweptParameter:
    """Parse NAME=VALUES: values and ranges FIRST..LAST[:STEP], which include LAST, separated by commas.

    Values of ranges have no trailing zeros after the decimal point; other values remain as they are. Raises
    ParameterError.
    """
    name, equals, values_text = text.partition("=")
    shown = one_line(text[:MAX_VALUE_CHARS])
    if not equals or not values_text:
        raise ParameterError(f"'{shown}': expected {EXAMPLES}")
    if not NAME.fullmatch(name):
        hint = "a name has letters, digits, '_' and '-', and begins with a letter"
        raise ParameterError(f"'{shown}': '{one_line(name[:50])}' is not a name (hint: {hint})")
    values: dict[str, None] = {}
    for item in values_text.split(","):
        for value in _values_of(item, shown):
            if value in values:
                raise ParameterError(f"'{shown}': the value {one_line(value)} occurs twice")
            values[value] = None
            if len(values) > MAX_VALUES:
                raise ParameterError(f"'{shown}': more than {MAX_VALUES:,} values (hint: use a larger step)")
    return SweptParameter(name, tuple(values))


def _values_of(item: str, shown: str) -> Iterator[str]:
    """Yield the values of a part of the text between commas. Raises ParameterError."""
    match = _RANGE.fullmatch(item)
    if match:
        yield from _range_values(Decimal(match["first"]), Decimal(match["last"]), match["step"], shown)
        return
    if _BEGINS_LIKE_A_RANGE.match(item):
        raise ParameterError(
            f"'{shown}': '{one_line(item)}' is not a range (hint: use FIRST..LAST or FIRST..LAST:STEP)"
        )
    if not item:
        raise ParameterError(f"'{shown}': a value is empty")
    if len(item) > MAX_VALUE_CHARS or not item.isprintable():
        raise ParameterError(f"'{shown}': a value must have at most {MAX_VALUE_CHARS} printable characters")
    yield item


def _range_values(first: Decimal, last: Decimal, step_text: str | None, shown: str) -> Iterator[str]:
    default = Decimal(1) if first <= last else Decimal(-1)
    step = default if step_text is None else Decimal(step_text)
    if not step:
        raise ParameterError(f"'{shown}': the step is zero")
    if (last - first) * step < 0:
        raise ParameterError(f"'{shown}': the step {step_text} leads away from {last}")
    value = first
    while (last - value) * step >= 0:
        yield _text(value)
        value += step


def _text(value: Decimal) -> str:
    """Return a number without an exponent and without trailing zeros after the decimal point."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
