"""Separates responses with an error status from the others, for tools that count responses by status."""

from collections.abc import Mapping

FIRST_ERROR = 400


def status_errors(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of failed responses by kind of error, given the number of responses by status code."""
    return {f"status {status}": count for status, count in counts.items() if int(status) >= FIRST_ERROR and count}
