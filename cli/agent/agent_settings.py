"""The agent's settings, one field per option, and the default journal directory."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli.line.line_settings import LineSettings

STATE = Path("/var/lib/casstat")
# Settings that the agent reloads after SIGHUP; changes to other settings require a restart.
RELOADED = ("to", "buckets", "series_limit", "node_metrics")


@dataclass(frozen=True)
class AgentSettings:
    """The options of `casstat agent`; `line` holds those that it shares with the default command."""

    line: LineSettings = field(default_factory=LineSettings)
    interval: float = 1.0
    tables: int = 10
    journal_dir: Path = STATE
    journal_limit: int | None = None
    journal_sync: str = "frame"
    listen: str = ""
    allow_anonymous_reads: bool = False
    allow_host: tuple[str, ...] = ()
    web_config_file: Path | None = None
    to: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    series_limit: int = 10_000
    node_metrics: bool = True


def journal_folder(environ: Mapping[str, str]) -> Path:
    """Return the default journal directory: systemd's, else /var/lib/casstat if writable, else one for the user."""
    if given := environ.get("STATE_DIRECTORY", "").partition(":")[0]:
        return Path(given)
    if os.access(STATE, os.W_OK) or (not STATE.exists() and os.access(STATE.parent, os.W_OK)):
        return STATE
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "casstat"
