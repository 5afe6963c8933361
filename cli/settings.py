"""What the line was told: one field for each of its options."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LineSettings:
    """The options of `casstat`, as its help explains them; None or "" where nothing was said."""

    interval: float | None = None
    count: int | None = None
    interval_option: float | None = None
    count_option: int | None = None
    with_time: bool = False
    epoch: bool = False
    no_header: bool = False
    keyspace: str = ""
    table: str = ""
    percentiles: bool = False
    compactions: bool = False
    disk: str | None = None
    net_interface: str | None = None
    wide: bool = False
    output: str = "text"
    jolokia: str | None = None
    node: str = ""
