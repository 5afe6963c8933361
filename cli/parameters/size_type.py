"""The parameter type for sizes such as 500M or 2G."""

import re

import click

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MIN_BYTES = 1 << 20


class Size(click.ParamType["int"]):
    """The parameter type for sizes of at least 1M, in bytes or with one of the binary suffixes K, M, G and T."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes."""
        match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([KMGT]?)(?:i?B)?", str(value), re.IGNORECASE)
        size = int(float(match[1]) * UNITS[match[2].upper()]) if match else 0
        if size < MIN_BYTES:
            self.fail(f"'{value}' is not a valid size (hint: use at least 1M, such as 500M or 2G)", param, ctx)
        return size
