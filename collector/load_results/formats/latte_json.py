"""latte's JSON report (`latte run`), of versions 0.27 and later.

A cycle is one call of a workload's function. Its latency begins when latte calls the function, not when the rate limit
would have allowed it, so it is the service time. The latencies include those of failed cycles.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collector.load_results.client_format import CommandTimes, Format, Options, ResultClock
from collector.load_results.client_latency import Latency
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, counted, failed_note
from collector.load_results.parsing.field_values import checked_count, decimal, rfc3339_s
from collector.load_results.parsing.hdr_histogram import decoded
from collector.load_results.parsing.labels import MAX_LABELS, label_of
from collector.whole_file import read_whole

NAME = "latte"
MAX_BYTES = 1 << 30


def recognises(text: str) -> bool:
    return text.lstrip().startswith("{") and '"conf"' in text and '"workload"' in text


def read(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    content = json.loads(read_whole(path, MAX_BYTES))
    return _result(content["result"], path.name)


FORMATS = (Format(NAME, recognises, read, clock=ResultClock.STEADY),)


def _result(result: Mapping[str, Any], source: str) -> ClientResult:
    begin_s, samples = rfc3339_s(result["start_time"]), result["log"]
    failed = sum(map(_failed, samples)) if samples else checked_count(result["error_count"])
    names = sorted(result["cycle_latency_by_fn"])
    if failed and len(names) > 1:
        # latte does not count errors by function.
        names = [""]
    if len(names) > MAX_LABELS:
        raise ValueError(f"{len(names)} functions (at most {MAX_LABELS} are supported)")
    operations = []
    for name in names:
        intervals = [
            _interval(name, sample, begin_s + decimal(sample["time_s"]), decimal(sample["duration_s"]), _failed(sample))
            for sample in samples
        ]
        total = _interval(name, result, begin_s, decimal(result["elapsed_time_s"]), failed)
        operations.append(Operation(label_of(name), tuple(intervals), total))
    notes = failed_note(failed, "request")
    if not samples:
        notes.append("the report contains no periodic samples (hint: run latte without --drop-sampling-log)")
    return ClientResult(NAME, "latte", source, tuple(operations), notes=tuple(notes))


def _failed(sample: Mapping[str, Any]) -> int:
    """Return the number of failed requests; latte's number of failed cycles is that of one thread and function."""
    return checked_count(sample["req_error_count"])


def _interval(name: str, content: Mapping[str, Any], begin_s: float, length_s: float, failed: int) -> ClientInterval:
    """Return a sample, or the whole report, as an interval of the function `name` ("" for all functions)."""
    latency = content["cycle_latency_by_fn"].get(name) if name else content["cycle_latency"]
    counts = decoded(latency["histogram"]) if latency else {}
    # A cycle ends at its first failed request.
    completed = max(sum(counts.values()) - failed, 0)
    return counted(begin_s, begin_s + length_s, completed, failed, Latency(counts))
