"""Parses the line protocol by the rules of InfluxDB (models/points.go) and VictoriaMetrics."""

import re

Line = tuple[str, dict[str, str], dict[str, float], int]


def parsed(line: str) -> Line:
    """Return a line's measurement, tags, fields and time."""
    head, fields, time = re.split(r"(?<!\\) ", line)
    measurement, *tags = re.split(r"(?<!\\),", head)
    pairs = dict(re.split(r"(?<!\\)=", tag) for tag in tags)
    numbers = dict(field.split("=") for field in fields.split(","))
    tags_by_name = {plain(name): plain(value) for name, value in pairs.items()}
    return plain(measurement), tags_by_name, {name: float(value) for name, value in numbers.items()}, int(time)


def plain(text: str) -> str:
    """Unescape commas, spaces and equals signs, like InfluxDB, which keeps all other backslashes."""
    return re.sub(r"\\([,= ])", r"\1", text)


def plain_for_victoria_metrics(text: str) -> str:
    """Unescape like VictoriaMetrics, which also unescapes backslashes."""
    return re.sub(r"\\([,= \\])", r"\1", text)
