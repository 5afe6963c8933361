"""Follows the result files of a run while its command runs, in steps of bounded size and CPU time."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from collector.load_results.client_format import FormatChoice
from collector.load_results.live.result_follower import Addition, ResultFollower
from collector.printable import one_line

CHUNK_BYTES = 256 << 10
MAX_STEP_BYTES = 16 << 20
# Checked between chunks.
MAX_STEP_CPU_S = 0.25
MAX_FILES = 50
LAG_BYTES = 64 << 20
"""The number of unread bytes from which a note states that reading lags behind."""

PathsAndChoices = Callable[[], Iterable[tuple[Path, FormatChoice]]]


class GrowingResults:
    """Follows the files that `paths` returns, each with what the user states about it; new ones may appear later.

    `output` is the file with the command's output, which is ignored unless it is a result. Content that precedes the
    creation of the object is ignored. `log` receives notes of one line.
    """

    def __init__(
        self,
        paths: PathsAndChoices,
        log: Callable[[str], None],
        output: Path | None = None,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._paths, self._log, self._output, self._cpu_s = paths, log, output, cpu_s
        self._followers: dict[Path, ResultFollower] = {}
        self._lagging: set[Path] = set()
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
        self._note_lag()

    def close(self) -> None:
        for follower in self._followers.values():
            follower.close()

    def _add_followers(self, *, are_old: bool) -> None:
        output = [(self._output, FormatChoice())] if self._output else []
        for path, choice in (*self._paths(), *output):
            if path not in self._followers and len(self._followers) < MAX_FILES:
                self._followers[path] = ResultFollower(
                    path, choice, self._log_of(path), is_old=are_old, may_be_unknown=path == self._output
                )

    def _log_of(self, path: Path) -> Callable[[str], None]:
        return lambda text: self._log(one_line(f"{path}: {text}"))

    def _note_lag(self) -> None:
        for path, follower in self._followers.items():
            if path not in self._lagging and follower.unread_bytes() > LAG_BYTES:
                self._lagging.add(path)
                self._log_of(path)(f"grows faster than it is read; more than {LAG_BYTES >> 20} MiB are not served yet")
