"""The cells of a row for programs: those of the line, of a merged run and of `top` alike."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite

from collector.model.sample import Sample
from exporters.line.columns import Cell, Column

DIGITS = 4


def rounded(value: Cell, digits: int = DIGITS) -> Cell:
    """Return a number with that many decimals, a whole one without a point; None for what is no number."""
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    number = round(value, digits)
    return int(number) if number.is_integer() else number


def cells(columns: Iterable[Column], sample: Sample, devices: Mapping[str, str]) -> dict[str, Cell]:
    """Return what the columns show of a sample, with the name of a device before the first column about it."""
    row: dict[str, Cell] = {}
    for column in columns:
        if column.device:
            row.setdefault(column.device, devices[column.device] or None)
        row[column.name] = rounded(column.of(sample))
    return row


def cells_with_ends(columns: Iterable[Column], sample: Sample, devices: Mapping[str, str]) -> dict[str, Cell]:
    """Return the cells, and beside each gauge its lowest and its highest reading."""
    lowest = replace(sample, values={series: ends[0] for series, ends in sample.spread.items()})
    highest = replace(sample, values={series: ends[1] for series, ends in sample.spread.items()})
    row: dict[str, Cell] = {}
    for column in columns:
        row |= cells([column], sample, devices)
        if column.is_gauge:
            row[f"min_{column.name}"] = rounded(column.of(lowest))
            row[f"max_{column.name}"] = rounded(column.of(highest))
    return row
