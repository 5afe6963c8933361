"""A node that records to a journal with long frames, and object storage that counts and may fail."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from collector.model.metric import Kind, Metric
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.recording.header import Header
from collector.recording.object_store import ObjectStore, ObjectStoreError
from collector.recording.writer import Journal, Limits

BEGIN_S = 1_795_000_000.0
HEAD = Header("1.0", 1.0, "one", sources=("node",), metrics=(Metric("a_total", Kind.COUNTER, "1", ""),))


class Recorder:
    """Records a tick per second; starts a new file after `file_s` seconds, and deletes files beyond `total_bytes`."""

    def __init__(
        self, folder: Path, file_s: float = 1e9, total_bytes: int = 1 << 30, session: str = HEAD.session
    ) -> None:
        self.folder = folder
        self.head = replace(HEAD, session=session)
        self._limits = Limits(sync="never", file_s=file_s, total_bytes=total_bytes)
        self._number = 0
        self.journal = self._journal()

    def _journal(self) -> Journal:
        return Journal(self.folder, lambda: self.head, self._limits, lambda _: None)

    def restart(self) -> None:
        """Begin a new file, like a recorder that was killed and started again."""
        # Without a file, no footer is written, and only the lock is released.
        self.journal._file = None
        self.journal.close()
        self.journal = self._journal()

    def record(self, ticks: int) -> None:
        for _ in range(ticks):
            scrape = Scrape("node", 5.0 + self._number, {("a_total",): 7 * self._number**2})
            self.journal.append(Snapshot("n1", Tick(BEGIN_S + self._number), (scrape,)))
            self._number += 1


class CountingStore(ObjectStore):
    """Object storage that records which objects were read and written, and fails while `failure` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"file://{folder}")
        self.written: list[str] = []
        self.read_keys: list[str] = []
        self.failure = ""

    def write(self, key: str, content: bytes) -> None:
        if self.failure:
            raise ObjectStoreError(self.failure)
        super().write(key, content)
        self.written.append(key)

    def chunks(self, key: str) -> Iterator[bytes]:
        self.read_keys.append(key)
        return super().chunks(key)
