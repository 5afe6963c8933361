"""Settings of the default command, one field per option."""

from dataclasses import dataclass, field
from pathlib import Path

from cli.parameters.jolokia_options import JolokiaSettings

DEFAULT_S = 1.0
"""Default interval between rows."""


@dataclass(frozen=True)
class LineSettings:
    """The options of the default command; see `casstat --help`. Omitted options have their default values."""

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
    caches: bool = False
    read_repair: bool = False
    tables: int | None = None
    log: Path | None = None
    log_pattern: str = ""
    events: Path | None = None
    write: Path | None = None
    journal_limit: int | None = None
    journal_sync: str = "frame"
    source: str = "auto"
    nodetool: Path | None = None
    jmx_port: int | None = None
    jmx_user: str = ""
    jmx_password_file: Path | None = None
    wide: bool = False
    wait: bool = False
    columns: tuple[str, ...] = ()
    output: str = "text"
    jolokia: JolokiaSettings = field(default_factory=JolokiaSettings)
    node: str = ""
