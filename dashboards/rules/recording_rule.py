"""Recording rules as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RecordingRule:
    """A recorded series: its name, its query, and labels that distinguish series with the same name."""

    name: str
    query: str
    labels: Mapping[str, str] = field(default_factory=dict)
