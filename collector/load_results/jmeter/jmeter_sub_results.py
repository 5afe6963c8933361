"""Finds sub-results in JMeter's CSV, where no column distinguishes them from other rows.

JMeter writes a sample, then its sub-results, whose times lie within the sample's. Their labels end with numbers (the
first sub-result of "page" is "page-0") unless they are not renamed (`subresults.disable_renaming`, functional test
mode). Other threads may write rows in between. A thread makes one sample after another, so rows of one thread that
overlap in other ways come from threads with equal names, as in a merged file.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_THREADS = 100_000
# JMeter adjusts its clock while it runs, so a sample can seem to begin before the previous one has ended.
MAX_JITTER_MS = 2


@dataclass
class Sample:
    """The last row of a thread that is not a sub-result."""

    label: bytes
    begin_ms: int
    end_ms: int
    has_sub_results: bool = False


class SubResults:
    """Recognises sub-results row by row; rows of transaction controllers must be left out."""

    def __init__(self, last_samples: Mapping[bytes, Sample], *, has_threads: bool) -> None:
        """`last_samples` has each thread's last row so far; `has_threads` states whether threads are known."""
        self._last_samples = dict(last_samples)
        self._has_threads = has_threads
        self._contained = self._overlaps = 0
        # How many rows of each label lie within samples, less those that do not.
        self._nested: Counter[bytes] = Counter()

    def flags(self, rows: Iterable[tuple[bytes, bytes, int, int]]) -> list[bool]:
        """Return whether each row (thread, label, begin and end in milliseconds) is a sub-result."""
        return [self._is_sub_result(*row) for row in rows]

    def _is_sub_result(self, thread: bytes, label: bytes, begin_ms: int, end_ms: int) -> bool:
        sample = self._last_samples.get(thread)
        if sample and sample.begin_ms <= begin_ms and end_ms <= sample.end_ms:
            if _is_named(sample, label, begin_ms) or self._is_within(sample, label, begin_ms):
                sample.has_sub_results = True
                self._nested[label] += 1
                return True
        elif sample and sample.begin_ms <= begin_ms < sample.end_ms - MAX_JITTER_MS:
            self._overlaps += 1
        if len(self._last_samples) == MAX_THREADS or len(self._nested) > MAX_THREADS:
            self._last_samples.clear()
            self._nested.clear()
        self._nested[label] -= 1
        self._last_samples[thread] = Sample(label, begin_ms, end_ms)
        return False

    def _is_within(self, sample: Sample, label: bytes, begin_ms: int) -> bool:
        """Return whether a row that lies within a sample of its thread is a sub-result, whatever its label is."""
        is_short = sample.end_ms - sample.begin_ms <= MAX_JITTER_MS and label == sample.label
        # A row of no length at the sample's end may be the thread's next sample.
        is_next = begin_ms == sample.end_ms and self._nested[label] <= 0
        if not self._has_threads or is_next or is_short:
            return False
        self._contained += 1
        return self._contained > self._overlaps


def _is_named(sample: Sample, label: bytes, begin_ms: int) -> bool:
    """Return whether a row that lies within a sample of its thread has the label of a sub-result."""
    parent, _, number = label.rpartition(b"-")
    if not sample.has_sub_results:
        return parent == sample.label and number == b"0"
    # At the sample's end, the thread's next sample may begin, whose label may end with a number, too.
    return number.isdigit() and (begin_ms < sample.end_ms or label.startswith(sample.label + b"-"))
