"""One series that Prometheus records."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RecordingRule:
    """One series that is recorded: its name, its query, and labels that tell it from others of that name."""

    name: str
    query: str
    labels: Mapping[str, str] = field(default_factory=dict)
