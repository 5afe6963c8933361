"""What is examined: the options given, the Cassandra processes here, and which of them is meant."""

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from cli.doctor.command_hints import Advice
from cli.line.line_settings import DEFAULT_S, LineSettings
from cli.node import node_selection
from collector.host.cassandra_processes import LocalNode
from collector.host.discovery import is_this_machine
from collector.host.kernel_files import read_text
from collector.model.snapshot import SourceError

_JAR = re.compile(r"(?:apache-cassandra|cassandra-all)-(\d[\w.~-]*)\.jar")


@dataclass(frozen=True)
class Owner:
    """Whose a process is."""

    uid: int
    name: str


@dataclass(frozen=True)
class ExaminedNode:
    """What is examined. `here` are the Cassandra processes of this machine, `uid` is who asks."""

    settings: LineSettings = field(default_factory=LineSettings)
    here: tuple[LocalNode, ...] = ()
    advice: Advice = field(default_factory=Advice)
    environ: Mapping[str, str] = field(default_factory=dict)
    root: Path = Path("/")
    uid: int = 0

    @cached_property
    def chosen(self) -> LocalNode | None:
        """Which of this machine's nodes is meant, None when it is not among them."""
        return node_selection.selected_node(self.settings, self.here)

    @property
    def url(self) -> str:
        """Where its Jolokia may answer, "" when that could only be another node's."""
        return node_selection.jolokia_url(self.settings, self.chosen, self.here)

    @property
    def asks_here(self) -> bool:
        """Whether it is on this machine that the node is asked for."""
        url = self.settings.jolokia.jolokia
        return not url or is_this_machine(urlsplit(url if "://" in url else f"//{url}").hostname or "")

    @property
    def nodetool(self) -> Path | None:
        """The nodetool to ask with."""
        return node_selection.nodetool_path(self.settings, self.chosen, self.environ.get("PATH"))

    @property
    def jmx_port(self) -> int | None:
        """Where its JMX answers, None for nodetool's own choice."""
        return node_selection.jmx_port(self.settings, self.chosen)

    @property
    def interval_s(self) -> float:
        """How often there is to be a row."""
        return DEFAULT_S if self.settings.interval_option is None else self.settings.interval_option

    def owner(self, pid: int) -> Owner | None:
        """Return whose process `pid` is, None when it is gone or hidden."""
        try:
            status = read_text(self.root / "proc" / str(pid) / "status")
        except SourceError:
            return None
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        # Real, effective, saved and file system's.
        uid = int(fields["Uid"].split()[1])
        try:
            return Owner(uid, pwd.getpwuid(uid).pw_name)
        except KeyError:
            return Owner(uid, f"#{uid}")

    def command(self, pid: int) -> list[str]:
        """Return a process' command line, empty when it is gone or hidden."""
        try:
            return read_text(self.root / "proc" / str(pid) / "cmdline").split("\0")
        except SourceError:
            return []

    def as_owner(self, pid: int, command: str) -> str:
        """Return a command of casstat's, to be typed as the user whose process `pid` is."""
        owner = self.owner(pid)
        if owner is None or self.uid in (0, owner.uid):
            return command
        return self.advice.as_user(owner.name, command)

    def configuration(self, name: str) -> str:
        """Return the path of a file in the chosen node's folder of configuration, its name alone where unknown."""
        for folder in self._class_path():
            if (folder / name).is_file():
                return str(folder / name)
        return name

    @cached_property
    def release(self) -> str:
        """The chosen node's version by its jars, "" when they do not tell."""
        for entry in self._class_path():
            jars = entry.parent.glob("*cassandra-*.jar") if entry.name == "*" else [entry]
            if found := next((match[1] for jar in jars if (match := _JAR.fullmatch(jar.name))), ""):
                return found
        return ""

    def _class_path(self) -> list[Path]:
        words = self.command(self.chosen.pid) if self.chosen else []
        paths = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-cp", "-classpath")]
        return [Path(entry) for path in paths for entry in path.split(os.pathsep) if entry.startswith("/")]
