"""HdrHistograms: decodes the compressed formats V0, V1 and V2, and states which histograms of a log are counted.

The formats are those of HdrHistogram's `encodeIntoCompressedByteBuffer`, in base64: a cookie and a length, then zlib
data with a header and the counts. V2 has the counts as ZigZag LEB128 integers, in which a negative number stands for
that many counts of zero. V1 and V0 have counts of 2, 4 or 8 bytes, stated by the header's cookie; V0 has a shorter
header.
"""

import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations

from collector.load_results.client_format import ClientFormatError, SourceFile
from collector.load_results.client_result import SIGNIFICANT_BITS, rounded_up
from collector.load_results.parsing import label_of
from collector.printable import one_line

COMPRESSED_V2, COMPRESSED_V1, COMPRESSED_V0 = 0x1C849304, 0x1C849302, 0x1C849309
V2, V1, V0 = 0x1C849303, 0x1C849301, 0x1C849308
OF_FLOATS = (0x0C72120E, 0x0C72120F)
"""The cookies of DoubleHistogram, and of its compressed form."""
# The upper four bits of a cookie's low byte give the word size, which V2 does not use. In the cookies above they are 0.
_COOKIE_MASK = ~0xF0
_WORDS = {2: "h", 4: "i", 8: "q"}
V1_HEADER, V0_HEADER = ">iiiiqqd", ">iiqqq"
MAX_BYTES = 8 << 20
MAX_NUMBERS = 1 << 18
"""The limit on encoded counts and runs of zeros; a histogram of three digits has at most 56,320 counts."""
MAX_DIGITS = 5
MAX_COUNT = (1 << 63) - 1


class HdrError(ValueError):
    """The text is not a histogram that can be decoded; the message states why."""


def decoded(text: str) -> dict[int, int]:
    """Return the counts of a histogram by value.

    Each value is the highest one that the histogram does not distinguish from the recorded one, in the unit in which
    values were recorded, rounded up to the resolution of `Latency`. Raises HdrError.
    """
    try:
        raw = b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", raw)
    except (ValueError, struct.error):
        raise HdrError("not a base64-encoded HdrHistogram") from None
    if cookie & _COOKIE_MASK in OF_FLOATS:
        raise HdrError("a histogram of floating-point values (DoubleHistogram) is not supported")
    if cookie & _COOKIE_MASK not in (COMPRESSED_V0, COMPRESSED_V1, COMPRESSED_V2):
        raise HdrError("not a compressed HdrHistogram")
    if not 0 <= length <= len(raw) - 8:
        raise HdrError("the histogram is truncated")
    return _counts(_decompressed(raw[8 : 8 + length]))


def _decompressed(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(data, MAX_BYTES)
    except zlib.error:
        raise HdrError("the histogram is damaged") from None
    if decompressor.unconsumed_tail:
        raise HdrError(f"the histogram is larger than {MAX_BYTES >> 20} MiB")
    if not decompressor.eof:
        raise HdrError("the histogram is truncated")
    return content


def _counts(content: bytes) -> dict[int, int]:
    digits, lowest, highest, numbers = _header(content)
    if not 0 <= digits <= MAX_DIGITS or not 1 <= lowest < highest:
        raise HdrError("the histogram has a malformed header")
    unit_bits = lowest.bit_length() - 1
    # The smallest power of two that distinguishes values of `digits` digits.
    half_bits = max((2 * 10**digits - 1).bit_length(), 1) - 1
    is_finer = half_bits >= SIGNIFICANT_BITS
    counts: dict[int, int] = {}
    for index, number in numbers:
        value = _highest_equivalent(index, unit_bits, half_bits)
        if value.bit_length() > highest.bit_length() + 1 or number > MAX_COUNT:
            raise HdrError("the histogram has malformed counts")
        if is_finer:
            value = rounded_up(value)
        counts[value] = counts.get(value, 0) + number
    return counts


def _header(content: bytes) -> tuple[int, int, int, Iterator[tuple[int, int]]]:
    """Return a histogram's digits, its lowest and highest value, and its counts by index without those of zero."""
    try:
        (cookie,) = struct.unpack_from(">i", content)
        if cookie & _COOKIE_MASK == V0:
            _, digits, lowest, highest, _ = struct.unpack_from(V0_HEADER, content)
            begin, length = struct.calcsize(V0_HEADER), len(content) - struct.calcsize(V0_HEADER)
        else:
            _, length, _, digits, lowest, highest, _ = struct.unpack_from(V1_HEADER, content)
            begin = struct.calcsize(V1_HEADER)
    except struct.error:
        raise HdrError("the histogram is truncated") from None
    if not 0 <= length <= len(content) - begin:
        raise HdrError("the histogram is truncated")
    data = content[begin : begin + length]
    if cookie & _COOKIE_MASK == V2:
        return digits, lowest, highest, _indexed(_numbers(data))
    # HdrHistogram ignores the lowest bit of the word size.
    word = (cookie & 0xF0) >> 4 & 0xE
    if cookie & _COOKIE_MASK not in (V1, V0) or word not in _WORDS or length % word:
        raise HdrError("the histogram has a malformed header")
    return digits, lowest, highest, _fixed(data, word)


def _indexed(numbers: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Yield each count of V2 with its index."""
    index = 0
    for read, number in enumerate(numbers):
        if read >= MAX_NUMBERS:
            raise HdrError(f"the histogram is larger than {MAX_NUMBERS:,} counts")
        if number > 0:
            yield index, number
        index += -number if number < 0 else 1


def _fixed(data: bytes, word: int) -> Iterator[tuple[int, int]]:
    """Yield each count of V1 or V0 that is not zero, with its index."""
    for index, (number,) in enumerate(struct.iter_unpack(f">{_WORDS[word]}", data)):
        if number < 0:
            raise HdrError("the histogram has a negative count")
        if number:
            yield index, number


def _highest_equivalent(index: int, unit_bits: int, half_bits: int) -> int:
    """Return the highest value that is counted at an index.

    Each of the first 2 * 2**half_bits indices covers one unit. Each index in every further group of 2**half_bits covers
    twice as many units as an index in the group before.
    """
    bucket = max((index >> half_bits) - 1, 0)
    offset = index - (bucket << half_bits)
    shift = bucket + unit_bits
    return ((offset + 1) << shift) - 1 if bucket < 64 else 1 << 64


def _numbers(data: bytes) -> Iterator[int]:
    """Yield ZigZag LEB128 integers; as in HdrHistogram, the ninth byte of an integer has eight bits."""
    value = shift = 0
    for byte in data:
        is_ninth = shift == 56
        value |= (byte if is_ninth else byte & 0x7F) << shift
        shift += 7
        if is_ninth or byte < 0x80:
            yield (value >> 1) ^ -(value & 1)
            value = shift = 0
    if shift:
        raise HdrError("the histogram is truncated")


# Which histograms of a log are counted: a log may have several histograms of the same operations.
#
# - cassandra-stress tags the histograms of an operation by what was measured: `READ-st` service time, `READ-rt`
#   response time, `READ-wt` waiting time (StressMetrics.logHistograms).
# - scylla-bench has `raw` (service time) and `co-fixed` (response time), and in mixed mode `raw-read` and so on, which
#   `raw` includes (pkg/results/thread_result.go).
# - YCSB writes a file for each measurement, which a comment names (OneMeasurementHdrHistogram); `formats.ycsb` states
#   what it measures.
# - NoSQLBench has a histogram of each metric of an activity, such as `main.bind` and `main.result`
#   (HistoIntervalLogger), and latte one of `cycles` and one of `requests` (`latte hdr`). Only one metric is counted.
# - latte's variant for ScyllaDB has `fn--NAME` for each function (`latte run --hdrfile`, stats/mod.rs).
#
# Any other tag is the name of an operation, with service times.

KINDS = SERVICE, RESPONSE, WAITING, FAILED, SUCCEEDED = "st", "rt", "wt", "failed", "succeeded"
ALL = "all"
"""The metric that stands for all tags: each is the name of an operation."""
PREFERRED = ("result", "result_success", "cycles_servicetime", "cycles")
"""Metrics in order of preference: the first one in the log is counted, unless the user chooses another one."""
SUCCESS = "result_success"
NO_LATENCIES = ("tries", "result_size", "resultset_size")
MAX_LISTED = 20
# Fewer operations may be equal by chance.
MIN_EQUAL = 10
_STRESS = re.compile(r"(?P<operation>.*?)-(?P<kind>[swr]t)")
_SCYLLA = re.compile(r"(?P<kind>raw|co-fixed)(?:-(?P<operation>read|write))?")
_METRIC = re.compile(
    r"(?:(?P<operation>.+?)[._])??"
    r"(?P<metric>bind|execute|tries|requests|result(?:set)?[-_]size|result(?:[-_](?:success|error))?"
    r"|(?:cycles|strides|phases|ops)(?:[._](?:servicetime|responsetime|waittime))?)",
    re.IGNORECASE,
)
_FUNCTION = "fn--"


@dataclass(frozen=True)
class Part:
    """The operation that a histogram belongs to, and what it counts: one of the constants above."""

    operation: str
    kind: str


def chosen(totals: Mapping[str, int], file: SourceFile) -> tuple[dict[str, Part], list[str]]:
    """Return the tags of a file that are counted, each with its part, and notes.

    `totals` has the number of values of each tag. Raises ClientFormatError if the user must choose a metric.
    """
    metric = file.options.get("metric", "")
    if metric == ALL:
        return {tag: Part(tag, SERVICE) for tag in totals}, []
    known = {tag: part for tag in totals if (part := _known(tag))}
    metrics = {tag: match for tag in totals.keys() - known.keys() if (match := _METRIC.fullmatch(tag))}
    if metric:
        return _named(totals, metric, known, file), []
    others = totals.keys() - known.keys() - metrics.keys()
    if not metrics:
        return {**_without_sums(known, totals), **{tag: Part(tag, SERVICE) for tag in others}}, []
    present = {_normal(match["metric"]) for match in metrics.values()}
    best = next((name for name in PREFERRED if name in present), "")
    if not best and (len(present) > 1 or others or present & set(NO_LATENCIES)):
        raise ClientFormatError(f"cannot tell which metric contains the operations' latencies {_listed(totals, file)}")
    best = best or next(iter(present))
    parts = {tag: _part(match) for tag, match in metrics.items() if _normal(match["metric"]) == best}
    if best == "result":
        parts |= {
            tag: Part(match["operation"] or "", SUCCEEDED)
            for tag, match in metrics.items()
            if _normal(match["metric"]) == SUCCESS
        }
    omitted = sorted((present | others) - {best})
    notes = [
        f"only {best} is counted, not {', '.join(map(one_line, omitted))}, which measure the same operations "
        f"(hint: {file.format},metric=NAME:FILE counts another one)"
    ]
    return {**known, **parts}, notes if omitted else []


def _known(tag: str) -> Part | None:
    """Return the part of a tag of cassandra-stress, scylla-bench, YCSB or a function of latte; None for any other."""
    if match := _SCYLLA.fullmatch(tag):
        return Part(match["operation"] or "", SERVICE if match["kind"] == "raw" else RESPONSE)
    if tag.endswith(f"-{FAILED}"):
        return Part(tag.removesuffix(f"-{FAILED}"), FAILED)
    if tag.startswith(_FUNCTION):
        return Part(tag.removeprefix(_FUNCTION), SERVICE)
    match = _STRESS.fullmatch(tag)
    return Part(match["operation"], match["kind"]) if match else None


def _part(match: re.Match[str]) -> Part:
    is_response = match["metric"].lower().endswith("responsetime")
    return Part(match["operation"] or "", RESPONSE if is_response else SERVICE)


def _without_sums(known: Mapping[str, Part], totals: Mapping[str, int]) -> dict[str, Part]:
    """Return the parts without scylla-bench's `raw` and `co-fixed` if others have the operations that they include."""
    is_mixed = any(_SCYLLA.fullmatch(tag) and part.operation and totals[tag] for tag, part in known.items())
    return {tag: part for tag, part in known.items() if not is_mixed or part.operation or not _SCYLLA.fullmatch(tag)}


def _named(totals: Mapping[str, int], metric: str, known: Mapping[str, Part], file: SourceFile) -> dict[str, Part]:
    """Return the tags that the user names, by the whole tag or by its metric."""
    parts = {}
    for tag in totals:
        match = _METRIC.fullmatch(tag)
        prefix, _, last = tag.rpartition(".")
        if match and _normal(match["metric"]) == _normal(metric):
            parts[tag] = _part(match)
        elif _normal(tag) == _normal(metric):
            parts[tag] = known.get(tag, Part("", SERVICE))
        elif _normal(last) == _normal(metric):
            parts[tag] = Part(prefix, SERVICE)
    if not parts:
        raise ClientFormatError(f"the log has no metric '{one_line(metric)}' {_listed(totals, file)}")
    return parts


def require_distinct(series: Mapping[str, Sequence[int]], file: SourceFile) -> None:
    """Raise ClientFormatError if two tags seem to be metrics of the same operations, and the user chooses none.

    `series` has the number of values of each tag by interval.
    """
    if file.options.get("metric"):
        return
    plain = [tag for tag in series if not (_known(tag) or _METRIC.fullmatch(tag)) and sum(series[tag]) >= MIN_EQUAL]
    for one, other in combinations(plain[:50], 2):
        if series[one] == series[other]:
            raise ClientFormatError(
                f"{one_line(one)} and {one_line(other)} have equally many values in every interval, so they probably "
                f"measure the same operations {_listed(series, file)}"
            )


def failed_in(attempted: Sequence[int], succeeded: Sequence[int]) -> list[int]:
    """Return how many operations failed in each interval, given the numbers of those made and of those that succeeded.

    A load generator counts the two one after the other, so an operation that succeeded may be in different intervals of
    them. The operations that are missing from the second one failed only if they are missing from all later ones, too.
    """
    differences = list(accumulate(number - good for number, good in zip(attempted, succeeded, strict=True)))
    missing = list(accumulate(reversed(differences), min))[::-1]
    failed: list[int] = []
    known = 0
    for number, total in zip(attempted, missing, strict=True):
        failed.append(min(max(total - known, 0), number))
        known += failed[-1]
    return failed


def _listed(tags: Collection[str], file: SourceFile) -> str:
    """Return a hint with the metrics to choose from."""
    names = list(dict.fromkeys(label_of(tag.rpartition(".")[2]) for tag in sorted(tags)))
    listed = ", ".join([*names[:MAX_LISTED], *["…"] * (len(names) > MAX_LISTED)])
    chosen_from = f"NAME is one of {listed}, or {ALL} if each is an operation of its own"
    return f"(hint: choose one with {file.format},metric=NAME:FILE; {chosen_from})"


def _normal(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
