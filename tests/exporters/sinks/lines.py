"""Line protocol read back, as InfluxDB reads it (models/points.go) and as VictoriaMetrics does."""

import re

Line = tuple[str, dict[str, str], dict[str, float], int]


def parsed(line: str) -> Line:
    """Return measurement, tags, fields and time of a line."""
    head, fields, time = re.split(r"(?<!\\) ", line)
    measurement, *tags = re.split(r"(?<!\\),", head)
    pairs = dict(re.split(r"(?<!\\)=", tag) for tag in tags)
    numbers = dict(field.split("=") for field in fields.split(","))
    tags_by_name = {plain(name): plain(value) for name, value in pairs.items()}
    return plain(measurement), tags_by_name, {name: float(value) for name, value in numbers.items()}, int(time)


def plain(text: str) -> str:
    """Undo what escapes commas, spaces and equals signs: InfluxDB keeps every other backslash."""
    return re.sub(r"\\([,= ])", r"\1", text)


def plain_for_victoria_metrics(text: str) -> str:
    """Undo escapes as VictoriaMetrics does, for which a backslash escapes one too."""
    return re.sub(r"\\([,= \\])", r"\1", text)
