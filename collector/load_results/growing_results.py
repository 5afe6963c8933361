"""Follows the result files of a run while its command runs, in steps of bounded size and CPU time."""

import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from collector.file_access import GrowingFile, NotRegularError
from collector.load_results.client_format import ClientFormatError, FormatChoice, GrowingResult, UnknownFormatError
from collector.load_results.client_result import Operation
from collector.load_results.format_registry import growing_result
from collector.load_results.unpacked_files import HEAD_BYTES
from collector.printable import one_line


@dataclass(frozen=True)
class Addition:
    """What one call of `ResultFollower.read` has read.

    operations  the operations that were read, each with its total and no intervals.
    malformed   the number of lines that were skipped.
    restarts    whether the file begins again, so that all previous counts are void.
    """

    operations: tuple[Operation, ...] = ()
    malformed: int = 0
    restarts: bool = False


class ResultFollower:
    """Reads what is added to a file in the chosen format.

    log             receives notes.
    is_old          whether content from before the follower was created is ignored.
    may_be_unknown  whether a file in no known format is ignored without a note.
    """

    def __init__(
        self,
        path: Path,
        choice: FormatChoice,
        log: Callable[[str], None],
        *,
        is_old: bool,
        may_be_unknown: bool = False,
    ) -> None:
        self._path = path
        self._choice = choice
        self._log = log
        self._may_be_unknown = may_be_unknown
        self._noted: set[str] = set()
        self._file: GrowingFile | None = None
        self._result: GrowingResult | None = None
        self._is_ignored = self._skips_line = False
        self._tried_bytes = 0
        if is_old and (file := self._opened()):
            file.seek(file.size())
            self._skips_line = not file.seal.endswith(b"\n") and bool(file.seal)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._forget()

    def note_lag(self) -> None:
        if self._file and not self._is_ignored and self._file.size() - self._file.position > LAG_BYTES:
            self._note(f"grows faster than it is read; more than {LAG_BYTES >> 20} MiB are not served yet")

    def read(self, max_bytes: int) -> Addition | None:
        """Read a part of what was added; return None if there is nothing to read now."""
        try:
            return self._read(max_bytes)
        except OSError as error:
            self._note(f"cannot be read: {error.strerror}")
        except ClientFormatError as error:
            if not (self._may_be_unknown and isinstance(error, UnknownFormatError)):
                self._note(str(error))
            self._is_ignored = True
        return None

    def _read(self, max_bytes: int) -> Addition | None:
        file = self._file or self._opened()
        if file is None:
            return None
        # Check for a replacement before reading. If the check came afterwards, lines appended between the read and the
        # replacement would be lost.
        is_replaced = False
        with suppress(OSError):
            # A file that was removed may still be written to.
            is_replaced = file.is_replaced()
        if file.is_rewritten():
            file.seek(0)
            self._forget()
            return Addition(restarts=True)
        result = self._reader_of(file)
        if result and (chunk := file.read(max_bytes)):
            return self._added(result, chunk, is_first=file.position == len(chunk))
        if is_replaced:
            self.close()
            return Addition(restarts=True)
        return None

    def _opened(self) -> GrowingFile | None:
        try:
            self._file = GrowingFile(self._path)
        except FileNotFoundError:
            return None
        except NotRegularError as error:
            self._note(str(error))
            return None
        return self._file

    def _forget(self) -> None:
        self._result = None
        self._is_ignored = self._skips_line = False
        self._tried_bytes = 0

    def _reader_of(self, file: GrowingFile) -> GrowingResult | None:
        """Return what reads the file; None if there is nothing to read, or not yet. Raises ClientFormatError."""
        size = file.size()
        if self._is_ignored or size == file.position:
            return None
        # To recognise a format is slow, so it is tried again only when there is twice as much to recognise it from.
        if self._result is None and not self._tried_bytes <= size < min(2 * self._tried_bytes, HEAD_BYTES):
            head = file.head(HEAD_BYTES).removeprefix(BOM_UTF8)
            if b"\n" in head or len(head) >= HEAD_BYTES - len(BOM_UTF8):
                self._tried_bytes = size
                self._result = growing_result(head, self._choice, is_final=size >= HEAD_BYTES)
        return self._result

    def _added(self, result: GrowingResult, chunk: bytes, *, is_first: bool) -> Addition:
        if is_first:
            chunk = chunk.removeprefix(BOM_UTF8)
        if self._skips_line:
            _, end, chunk = chunk.partition(b"\n")
            self._skips_line = not end
        malformed = result.add(chunk)
        if malformed or result.problem:
            self._note(f"malformed lines are skipped (first problem: {result.problem})", kind="malformed")
        return Addition(result.take(), malformed)

    def _note(self, text: str, kind: str = "") -> None:
        if (kind or text) not in self._noted:
            self._noted.add(kind or text)
            self._log(text)


CHUNK_BYTES = 256 << 10
MAX_STEP_BYTES = 16 << 20
# Checked between chunks.
MAX_STEP_CPU_S = 0.25
MAX_FILES = 50
LAG_BYTES = 64 << 20
"""The number of unread bytes from which a note states that reading lags behind."""


class GrowingResults:
    """Follows the files that `paths` returns, each with what the user states about it; new ones may appear later.

    `output` is the file with the command's output, which is ignored unless it is a result. Content that precedes the
    creation of the object is ignored. `log` receives notes of one line.
    """

    def __init__(
        self,
        paths: Callable[[], Iterable[tuple[Path, FormatChoice]]],
        log: Callable[[str], None],
        output: Path | None = None,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._paths, self._log, self._output, self._cpu_s = paths, log, output, cpu_s
        self._followers: dict[Path, ResultFollower] = {}
        self._add_followers(are_old=True)

    def step(self) -> Iterator[tuple[Path, Addition]]:
        """Yield what was added to the files since the last step, or a part of it; the next step yields the rest."""
        self._add_followers(are_old=False)
        ends_s = self._cpu_s() + MAX_STEP_CPU_S
        waiting, remaining = list(self._followers.items()), MAX_STEP_BYTES
        while waiting and remaining > 0 and self._cpu_s() < ends_s:
            path, follower = waiting.pop(0)
            addition = follower.read(min(CHUNK_BYTES, remaining))
            if addition is not None:
                yield path, addition
                waiting.append((path, follower))
                remaining -= CHUNK_BYTES
        # The next step begins with the files that this one has not reached.
        self._followers = {**dict(waiting), **self._followers}
        for follower in self._followers.values():
            follower.note_lag()

    def close(self) -> None:
        for follower in self._followers.values():
            follower.close()

    def _add_followers(self, *, are_old: bool) -> None:
        output = [(self._output, FormatChoice())] if self._output else []
        for path, choice in (*self._paths(), *output):
            if path not in self._followers and len(self._followers) < MAX_FILES:
                self._followers[path] = ResultFollower(
                    path, choice, partial(self._note, path), is_old=are_old, may_be_unknown=path == self._output
                )

    def _note(self, path: Path, text: str) -> None:
        self._log(one_line(f"{path}: {text}"))
