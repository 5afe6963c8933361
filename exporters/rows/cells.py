"""Cells of machine-readable rows, shared by the default command, merged runs and `top`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite

from collector.model.sample import Sample
from exporters.rows.columns import Column
from exporters.rows.formulas import Cell

DIGITS = 4


def rounded(value: Cell, digits: int = DIGITS) -> Cell:
    """Return the value; floats are rounded to `digits` places, whole ones become integers, and non-finite ones None."""
    if not isinstance(value, float):
        return value
    if value.is_integer():
        return int(value)
    if not isfinite(value):
        return None
    number = round(value, digits)
    return int(number) if number.is_integer() else number


def cells(columns: Iterable[Column], sample: Sample, devices: Mapping[str, str]) -> dict[str, Cell]:
    """Return a sample's cells by column name; a device's name precedes its columns."""
    row: dict[str, Cell] = {}
    for column in columns:
        _add_cell(row, column, sample, devices)
    return row


def cells_with_ends(columns: Iterable[Column], sample: Sample, devices: Mapping[str, str]) -> dict[str, Cell]:
    """Return the cells; each gauge's cell is followed by its minimum and maximum (`min_…`, `max_…`)."""
    lowest = replace(sample, values={series: ends[0] for series, ends in sample.spread.items()})
    highest = replace(sample, values={series: ends[1] for series, ends in sample.spread.items()})
    row: dict[str, Cell] = {}
    for column in columns:
        _add_cell(row, column, sample, devices)
        if column.is_gauge:
            row[f"min_{column.name}"] = rounded(column.of(lowest))
            row[f"max_{column.name}"] = rounded(column.of(highest))
    return row


def _add_cell(row: dict[str, Cell], column: Column, sample: Sample, devices: Mapping[str, str]) -> None:
    if column.device:
        row.setdefault(column.device, devices[column.device] or None)
    row[column.name] = rounded(column.of(sample))
