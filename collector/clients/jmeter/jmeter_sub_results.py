"""Finds sub-results in JMeter's CSV, where no column distinguishes them from other rows.

JMeter writes a sample, then its sub-results, whose times lie within the sample's. Their labels end with numbers: the
first sub-result of "page" is "page-0". Other threads may write rows in between.
"""

from collections.abc import Iterable
from dataclasses import dataclass

MAX_THREADS = 100_000


@dataclass
class _Sample:
    label: bytes
    begin_ms: int
    end_ms: int
    has_sub_results: bool = False


class SubResults:
    """Recognises sub-results row by row; rows of transaction controllers must be left out."""

    def __init__(self) -> None:
        self._last_samples: dict[bytes, _Sample] = {}

    def flags(self, rows: Iterable[tuple[bytes, bytes, int, int]]) -> list[bool]:
        """Return whether each row (thread, label, begin and end in milliseconds) is a sub-result."""
        return [self._is_sub_result(*row) for row in rows]

    def _is_sub_result(self, thread: bytes, label: bytes, begin_ms: int, end_ms: int) -> bool:
        sample = self._last_samples.get(thread)
        if sample and sample.begin_ms <= begin_ms and end_ms <= sample.end_ms:
            parent, _, number = label.rpartition(b"-")
            if (number == b"0" and parent == sample.label) or (sample.has_sub_results and number.isdigit()):
                sample.has_sub_results = True
                return True
        if len(self._last_samples) == MAX_THREADS:
            self._last_samples.clear()
        self._last_samples[thread] = _Sample(label, begin_ms, end_ms)
        return False
