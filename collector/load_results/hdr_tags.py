"""Which histograms of a log are counted: a log may have several histograms of the same operations.

- cassandra-stress tags the histograms of an operation by what was measured: `READ-st` service time, `READ-rt` response
  time, `READ-wt` waiting time (StressMetrics.logHistograms).
- scylla-bench has `raw` (service time) and `co-fixed` (response time), and in mixed mode `raw-read` and so on, which
  `raw` includes (pkg/results/thread_result.go).
- YCSB writes a file for each measurement, which a comment names (OneMeasurementHdrHistogram); `ycsb_measurements`
  states what it measures.
- NoSQLBench has a histogram of each metric of an activity, such as `main.bind` and `main.result`
  (HistoIntervalLogger), and latte one of `cycles` and one of `requests` (`latte hdr`). Only one metric is counted.
- latte's variant for ScyllaDB has `fn--NAME` for each function (`latte run --hdrfile`, stats/mod.rs).

Any other tag is the name of an operation, with service times.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations

from collector.load_results.client_format import ClientFormatError
from collector.load_results.parsing.labels import label_of
from collector.load_results.ycsb_measurements import INTENDED, measured_by
from collector.printable import one_line

KINDS = SERVICE, RESPONSE, WAITING, FAILED, SUCCEEDED = "st", "rt", "wt", "failed", "succeeded"
ALL = "all"
"""The metric that stands for all tags: each is the name of an operation."""
PREFERRED = ("result", "result_success", "cycles_servicetime", "cycles")
"""The metrics of which the first one that a log has is counted, unless the user chooses another one."""
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


def ycsb_tag(name: str) -> str:
    """Return a tag for the histograms of the YCSB log that a comment names. Raises ValueError if it is not counted."""
    measured = measured_by([name], is_intended=False).get(name)
    if measured is None:
        raise ValueError(
            f"{one_line(name)} is not counted: it is no operation, or is made of operations with other logs"
        )
    if measured.failure is not None and measured.repeats:
        raise ValueError(f"{one_line(name)} has the operations of the log without {INTENDED}, which count once")
    kind = SERVICE if measured.failure is None else FAILED
    return f"{measured.operation}-{RESPONSE if measured.repeats else kind}"


def chosen(totals: Mapping[str, int], metric: str, form: str = "hdr-log") -> tuple[dict[str, Part], list[str]]:
    """Return the tags that are counted, each with its part, and notes.

    totals  the number of values of each tag.
    metric  the metric that the user chooses, ALL, or "".
    form    the name of the file's format, for hints.

    Raises ClientFormatError if the user must choose a metric.
    """
    if metric == ALL:
        return {tag: Part(tag, SERVICE) for tag in totals}, []
    known = {tag: part for tag in totals if (part := _known(tag))}
    metrics = {tag: match for tag in totals.keys() - known.keys() if (match := _METRIC.fullmatch(tag))}
    if metric:
        return _named(totals, metric, known, form), []
    others = totals.keys() - known.keys() - metrics.keys()
    if not metrics:
        return {**_without_sums(known, totals), **{tag: Part(tag, SERVICE) for tag in others}}, []
    present = {_normal(match["metric"]) for match in metrics.values()}
    best = next((name for name in PREFERRED if name in present), "")
    if not best and (len(present) > 1 or others or present & set(NO_LATENCIES)):
        raise ClientFormatError(f"the log has metrics of which one must be chosen {_listed(totals, form)}")
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
        f"(hint: {form},metric=NAME:FILE counts another one)"
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


def _named(totals: Mapping[str, int], metric: str, known: Mapping[str, Part], form: str) -> dict[str, Part]:
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
        raise ClientFormatError(f"the log has no metric '{one_line(metric)}' {_listed(totals, form)}")
    return parts


def require_distinct(metric: str, series: Mapping[str, Sequence[int]], form: str = "hdr-log") -> None:
    """Raise ClientFormatError if two tags seem to be metrics of the same operations.

    series  the number of values of each tag by interval.
    """
    plain = [tag for tag in series if not (_known(tag) or _METRIC.fullmatch(tag)) and sum(series[tag]) >= MIN_EQUAL]
    if metric:
        return
    for one, other in combinations(plain[:50], 2):
        if series[one] == series[other]:
            raise ClientFormatError(
                f"{one_line(one)} and {one_line(other)} have equally many values in every interval, so they probably "
                f"measure the same operations {_listed(series, form)}"
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


def _listed(tags: Collection[str], form: str = "hdr-log") -> str:
    """Return a hint with the metrics to choose from."""
    names = list(dict.fromkeys(label_of(tag.rpartition(".")[2]) for tag in sorted(tags)))
    listed = ", ".join([*names[:MAX_LISTED], *["…"] * (len(names) > MAX_LISTED)])
    return f"(hint: {form},metric=NAME:FILE; NAME is one of {listed}, or {ALL} if each is an operation of its own)"


def _normal(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
