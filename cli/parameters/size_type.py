"""Sizes on the command line: 500M, 2G."""

import re

import click

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SMALLEST = 1 << 20


class Size(click.ParamType["int"]):
    """A number of bytes, as a number with K, M, G or T (of 1024 each)."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes."""
        found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([KMGT]?)(?:i?B)?", str(value), re.IGNORECASE)
        size = int(float(found[1]) * UNITS[found[2].upper()]) if found else 0
        if size < SMALLEST:
            self.fail(f"'{value}' is no size such as 500M or 2G, of 1M or more", param, ctx)
        return size
