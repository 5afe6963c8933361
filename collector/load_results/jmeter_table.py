"""JMeter's CSV column by column, with pyarrow and numpy: of whole files, and of files that JMeter is writing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.arrow import csv, csv_table, pa, pc
from collector.load_results import jmeter_results as jtl
from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import Operation
from collector.load_results.jmeter_results import MS_PER_S, JmeterSamples, JtlTimes, LabelSamples, Layout
from collector.printable import one_line

# Sub-results, which no column of the CSV distinguishes from other rows. JMeter writes a sample, then its sub-results,
# whose times lie within the sample's. Their labels end with numbers (the first sub-result of "page" is "page-0") unless
# they are not renamed (`subresults.disable_renaming`, functional test mode). Other threads may write rows in between. A
# thread makes one sample after another, so rows of one thread that overlap in other ways come from threads with equal
# names, as in a merged file.

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

    def is_sub_result(self, thread: bytes, label: bytes, begin_ms: int, end_ms: int) -> bool:
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


_TEXTS = pa.dictionary(pa.int32(), pa.binary())
COLUMNS: Mapping[str, pa.DataType] = {
    "timeStamp": pa.int64(),
    "elapsed": pa.int64(),
    "success": pa.bool_(),
    "label": _TEXTS,
    "threadName": _TEXTS,
    "responseCode": _TEXTS,
    "responseMessage": pa.binary(),
    "SampleCount": pa.int64(),
}
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class MalformedBlockError(ValueError):
    """A block has a malformed row; the message does not always state which one."""


class JmeterTable:
    """Adds the rows of blocks, whose times `times` must have converted, to `samples`."""

    def __init__(self, layout: Layout, near_s: float, options: Mapping[str, str]) -> None:
        """Add rows with the given layout, whose times are near to `near_s`."""
        self.samples = JmeterSamples()
        self.times = JtlTimes(layout.delimiter, near_s, jtl.ZONES[options.get("zone", "local")])
        self._columns = list(layout.columns)
        types = {name: kind for name, kind in COLUMNS.items() if name in self._columns}
        self._conversion = csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            null_values=[],
            true_values=jtl.TRUE,
            false_values=jtl.FALSE,
        )
        self._sub_results: SubResults | None = None
        # The last row of each thread, until there is a sub-result.
        self._last: dict[bytes, Sample] = {}

    def add(self, block: bytes) -> None:
        """Add the rows of a block. Raises MalformedBlockError and ClientFormatError."""
        if not block.strip():
            return
        rows = _Rows(self._parsed(block))
        self.samples.extend(int(rows.seconds.min()), int(rows.seconds.max()))
        if "responseMessage" not in self._columns and "threadName" in self._columns:
            self.samples.containers += rows.count_containers()
        sub_results = self._sub_result_flags(rows)
        self.samples.sub_results += int(sub_results.sum())
        for samples, selected in (
            (self.samples.plain, ~rows.transactions & ~sub_results),
            (self.samples.transactions, rows.transactions),
        ):
            _add_times(samples, rows, selected)
            _add_completed(samples, rows, selected & rows.succeeded)
            _add_failed(samples, rows, selected & ~rows.succeeded)

    def _parsed(self, block: bytes) -> pa.Table:
        try:
            return csv_table(
                block,
                csv.ReadOptions(column_names=self._columns, block_size=len(block) + 1),
                csv.ParseOptions(delimiter=self.times.delimiter, newlines_in_values=b'"' in block),
                self._conversion,
            )
        except pa.ArrowInvalid as error:
            raise MalformedBlockError(str(error)) from None

    def _sub_result_flags(self, rows: "_Rows") -> Flags:
        flags = np.zeros(len(rows.seconds), bool)
        if self._sub_results is None:
            # In whole seconds, samples that follow each other seem to be within each other.
            has_threads = "threadName" in self._columns and not self.times.has_whole_seconds
            if not any(label.endswith(b"-0") for label in rows.labels.names) and not (
                has_threads and rows.have_nested(self._last)
            ):
                self._last |= rows.last_of_threads()
                return flags
            self._sub_results = SubResults(self._last, has_threads=has_threads)
            self._last = {}
        flags[~rows.transactions] = [self._sub_results.is_sub_result(*row) for row in rows.timed()]
        return flags


class _Texts:
    """A column of texts: each row's code is an index into `names`. If the column is missing, all texts are empty."""

    def __init__(self, table: pa.Table, name: str) -> None:
        if name in table.column_names:
            column = table.column(name).combine_chunks()
            self.names: list[bytes] = column.dictionary.to_pylist()
            self.codes: Ints = column.indices.to_numpy().astype(np.int64)
        else:
            self.names, self.codes = [b""], np.zeros(table.num_rows, np.int64)


class _Rows:
    """The rows of a block, at least one. Raises MalformedBlockError if a row is malformed."""

    def __init__(self, table: pa.Table) -> None:
        self.begins: Ints = table.column("timeStamp").to_numpy()
        self.elapsed: Ints = table.column("elapsed").to_numpy()
        _check_range(self.begins, jtl.MAX_TIME_MS)
        _check_range(self.elapsed, jtl.MAX_ELAPSED_MS)
        if "SampleCount" in table.column_names and (table.column("SampleCount").to_numpy() != 1).any():
            raise MalformedBlockError("a row represents several samples")
        self.ends = self.begins + self.elapsed
        self.seconds = self.ends // MS_PER_S
        self.first = int(self.seconds.min())
        self.span = int(self.seconds.max()) - self.first + 1
        self.succeeded: Flags = table.column("success").to_numpy()
        self.labels, self._threads = _Texts(table, "label"), _Texts(table, "threadName")
        self.response_codes = _Texts(table, "responseCode")
        self.has_response_codes = "responseCode" in table.column_names
        self.transactions: Flags = np.zeros(table.num_rows, bool)
        if "responseMessage" in table.column_names:
            self.transactions = pc.starts_with(table.column("responseMessage"), jtl.TRANSACTION).to_numpy()

    def groups(self, selected: Flags, values: int) -> Ints:
        """Return a number for each row's label and second; multiplied by `values`, it still fits into 64 bits."""
        if len(self.labels.names) * self.span * values >= 1 << 63:
            raise MalformedBlockError("too many labels, too far apart")
        groups: Ints = self.labels.codes[selected] * self.span + self.seconds[selected] - self.first
        return groups

    def have_nested(self, last: Mapping[bytes, Sample]) -> bool:
        """Return whether a row lies within the one before of its thread; `last` has those before the block."""
        order = self._by_thread()
        codes, begins, ends = self._threads.codes[order], self.begins[order], self.ends[order]
        is_first = np.diff(codes, prepend=-1) != 0
        within = (begins[1:] >= begins[:-1]) & (ends[1:] <= ends[:-1]) & (begins[1:] < ends[:-1])
        if (within & ~is_first[1:]).any():
            return True
        return any(
            sample.begin_ms <= self.begins[row] < sample.end_ms and self.ends[row] <= sample.end_ms
            for row in order[is_first].tolist()
            if (sample := last.get(self._threads.names[self._threads.codes[row]]))
        )

    def count_containers(self) -> int:
        """Return how many rows contain the one before of their thread, as those of transaction controllers do."""
        order = self._by_thread()
        threads, labels = self._threads.codes[order], self.labels.codes[order]
        begins, ends = self.begins[order], self.ends[order]
        is_around = (begins[1:] <= begins[:-1]) & (ends[:-1] <= ends[1:]) & (labels[1:] != labels[:-1])
        return int((is_around & (threads[1:] == threads[:-1]) & (ends[:-1] - begins[1:] > MAX_JITTER_MS)).sum())

    def last_of_threads(self) -> dict[bytes, Sample]:
        order = self._by_thread()
        is_last = np.diff(self._threads.codes[order], append=-1) != 0
        return {
            self._threads.names[self._threads.codes[row]]: Sample(
                self.labels.names[self.labels.codes[row]], int(self.begins[row]), int(self.ends[row])
            )
            for row in order[is_last].tolist()
        }

    def _by_thread(self) -> Ints:
        """Return the numbers of the rows by thread, without those of transaction controllers."""
        rows = np.flatnonzero(~self.transactions)
        ordered: Ints = rows[np.argsort(self._threads.codes[rows], kind="stable")]
        return ordered

    def timed(self) -> list[tuple[bytes, bytes, int, int]]:
        """Return thread, label, begin and end of all rows but those of transaction controllers."""
        others = ~self.transactions
        threads = [self._threads.names[code] for code in self._threads.codes[others]]
        labels = [self.labels.names[code] for code in self.labels.codes[others]]
        begins, ends = self.begins[others].tolist(), self.ends[others].tolist()
        return list(zip(threads, labels, begins, ends, strict=True))


def _add_times(samples: LabelSamples, rows: _Rows, selected: Flags) -> None:
    """Note the first sample and the last one of each second."""
    ends = rows.ends[selected]
    if not len(ends):
        return
    first = int(ends.argmin())
    samples.add_time(int(ends[first]) / MS_PER_S, int(rows.elapsed[selected][first]) / MS_PER_S)
    ordered = np.sort(ends)
    for end_ms in ordered[np.flatnonzero(np.diff(ordered // MS_PER_S, append=-1))].tolist():
        samples.add_time(end_ms / MS_PER_S)


def _add_completed(samples: LabelSamples, rows: _Rows, selected: Flags) -> None:
    elapsed = rows.elapsed[selected]
    limit = int(elapsed.max(initial=0)) + 1
    groups = rows.groups(selected, limit)
    keys, counts = np.unique(groups * limit + elapsed, return_counts=True)
    begins = np.flatnonzero(np.diff(keys // limit, prepend=-1)).tolist()
    durations, numbers = (keys % limit).tolist(), counts.tolist()
    for begin, end in zip(begins, [*begins[1:], len(keys)], strict=False):
        code, second = divmod(int(keys[begin]) // limit, rows.span)
        counts_by_ms = dict(zip(durations[begin:end], numbers[begin:end], strict=True))
        samples.add_completed(rows.labels.names[code], rows.first + second, counts_by_ms)


def _add_failed(samples: LabelSamples, rows: _Rows, selected: Flags) -> None:
    names = rows.response_codes.names
    groups = rows.groups(selected, len(names))
    keys, counts = np.unique(groups * len(names) + rows.response_codes.codes[selected], return_counts=True)
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        group, kind = divmod(key, len(names))
        code, second = divmod(group, rows.span)
        response_code = names[kind] if rows.has_response_codes else None
        samples.add_failed(rows.labels.names[code], rows.first + second, response_code, count)


def _check_range(values: Ints, limit: int) -> None:
    if values.min() < 0 or values.max() >= limit:
        raise MalformedBlockError("a time is out of range")


# A longer record is assumed to have an unclosed quote.
MAX_RECORD_BYTES = 256 << 10


class GrowingRows:
    """A growing result (see `GrowingResult`) whose rows have the given layout."""

    def __init__(self, layout: Layout, near_s: float, options: Mapping[str, str]) -> None:
        self.problem = ""
        self._layout = layout
        self._table = JmeterTable(layout, near_s, options)
        self._rest = b""

    def add(self, data: bytes) -> int:
        self._rest += data
        end = jtl.end_of_records(self._rest)
        if not end and len(self._rest) > MAX_RECORD_BYTES:
            end = self._rest.rfind(b"\n") + 1 or len(self._rest)
        block, self._rest = self._rest[:end], self._rest[end:]
        rows, _ = self._layout.without_headers(block)
        return self._add_rows(self._table.times.converted(rows))

    def take(self) -> tuple[Operation, ...]:
        return self._table.samples.take()

    def _add_rows(self, block: bytes) -> int:
        """Add rows; if some are malformed, add the others. Return the number of malformed ones."""
        try:
            self._table.add(block)
        except (MalformedBlockError, ClientFormatError):
            rows = list(self._records(block))
            valid = [row for row in rows if not self._problem(row)]
            try:
                self._table.add(b"".join(valid))
            except (MalformedBlockError, ClientFormatError) as error:
                self.problem = self.problem or one_line(error)
            return len(rows) - len(valid)
        return 0

    def _records(self, block: bytes) -> Iterator[bytes]:
        """Yield the records of a block; a line with an unclosed or misplaced quote is a record of its own."""
        lines = block.splitlines(keepends=True)
        index = 0
        while index < len(lines):
            end = index + 1
            record = lines[index]
            while record.count(b'"') % 2 and end < len(lines):
                record += lines[end]
                end += 1
            if end > index + 1 and self._problem(record):
                record, end = lines[index], index + 1
            yield record
            index = end

    def _problem(self, record: bytes) -> str:
        """Return why a record is malformed; "" if it is not."""
        try:
            jtl.check_rows(record, 1, self._layout)
        except ClientFormatError as error:
            self.problem = self.problem or one_line(error).partition(": ")[2]
            return str(error)
        return ""
