"""A node's log that tests write and rotate, and the events read from it."""

from contextlib import suppress
from pathlib import Path

from collector.model.snapshot import Scrape
from collector.node.log.log_source import LogSource
from collector.node.log.logback import DEFAULT_PATTERN, parse
from tests.collector.fakes import FakeClock

PATTERN = parse(DEFAULT_PATTERN)
TIMEOUT_S = 0.8


def down(number: int) -> bytes:
    """Return a log line reporting that node `number` is down; `texts` returns the text of its event."""
    return (
        b"INFO  [GossipStage:1] 2026-11-21 12:32:43,007 Gossiper.java:1177 - "
        b"InetAddress /10.0.0.%d is now DOWN\n" % number
    )


def texts(*numbers: int) -> list[str]:
    return [f"10.0.0.{number} is DOWN" for number in numbers]


class Log:
    """The log at `path` and its reader. If `content` is None, the file does not exist yet."""

    def __init__(self, path: Path, content: bytes | None = b"", hint: str = "") -> None:
        self.path = path
        self.clock = FakeClock()
        self.source = LogSource(path, PATTERN, self.clock, hint)
        if content is not None:
            path.write_bytes(content)
            assert self.events() == []

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def read(self) -> Scrape:
        self.clock.busy(1.0)
        return self.source.read(TIMEOUT_S)

    def events(self) -> list[str]:
        """Read the log once, assert that there was no problem, and return the event texts."""
        scrape = self.read()
        assert scrape.problem == ""
        return [event.text for event in scrape.events]


def open_files() -> set[str]:
    """Return the files that this process has open."""
    files = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        # The list includes the descriptor used to read the directory, which is closed by now.
        with suppress(FileNotFoundError):
            files.add(str(descriptor.readlink()))
    return files
