"""The JSON codec for samples in the agent's API. It is lossless, so samples from many nodes can be added exactly.

    {"node": "10.0.0.1", "identity": {"cluster": …, "dc": …, "rack": …, "node": …},
     "tick": {"time_s": …, "late_s": …, "missed": …, "suspended_s": …},
     "elapsed_s": {source: seconds}, "events": [{"kind": …, "text": …, "time_s": …}],
     "values": {metric: [[label value, …, value], …]}, "held": {like "values"}, "age_s": …,
     "spread": {metric: [[label value, …, [minimum, maximum]], …]}}

"held" contains last known values. A value is a number (gauge), a string (text), [increase, elapsed_s] (counter; a third
number is the aggregated rate of several nodes), or a histogram: {"unit": "seconds", "length": 128, "filled": [[bucket
index, count], …]}. A layout other than Cassandra's is given by "edges" and "low" instead of unit and length; the last
edge, infinity, is omitted. JSON cannot represent non-finite numbers: a non-finite gauge is ["NaN"], ["Infinity"] or
["-Infinity"]. Empty and None fields are omitted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import chain, pairwise
from math import inf, isfinite
from typing import Any, TypeVar

from collector.model.histogram import TIMER_UNITS_S, Buckets, LayoutError, upper_bounds_of
from collector.model.metric import Series
from collector.model.snapshot import Derived, Event, Identity, Rate, Sample, Tick

Decoded = TypeVar("Decoded")
MAX_BUCKETS = 512
"""The maximum number of buckets of a histogram; more are implausible."""
_SECONDS, _COUNT = "seconds", "1"
# bool is not one of them, although it is a subclass of int.
_NUMBERS = frozenset({int, float})
_NOT_FINITE = {"NaN": float("nan"), "Infinity": inf, "-Infinity": -inf}


class MalformedSampleError(ValueError):
    """The JSON is not a valid sample. The one-line message continues a sentence that begins with "a sample"."""


def encoded(sample: Sample, identity: Identity | None = None) -> dict[str, Any]:
    """Return the sample, with its node's identity if given, as an object for `json.dumps`."""
    content: dict[str, Any] = {
        "node": sample.node,
        "identity": None if identity is None else dict(identity.labels()),
        "tick": asdict(sample.tick),
        "elapsed_s": dict(sample.elapsed_s),
        "events": [_event(event) for event in sample.events],
        "values": _grouped((series, _value(value)) for series, value in sample.values.items()),
        "held": _grouped((series, _value(value)) for series, value in sample.last_known.items()),
        "age_s": sample.age_s,
        "spread": _grouped((series, [_number(bound) for bound in bounds]) for series, bounds in sample.spread.items()),
    }
    optional = ("identity", "elapsed_s", "events", "held", "age_s", "spread")
    return {key: value for key, value in content.items() if key not in optional or value not in (None, {}, [])}


def decoded(content: Mapping[str, Any]) -> Sample:
    """Return the sample that `content` encodes. Unknown fields are ignored. Raises MalformedSampleError."""
    try:
        return _sample(content)
    except MalformedSampleError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise MalformedSampleError(f"is not valid: {type(error).__name__}: {str(error)[:100]!r}") from None


def _event(event: Event) -> dict[str, Any]:
    content: dict[str, Any] = {"kind": event.kind, "text": event.text}
    return content if event.time_s is None else {**content, "time_s": event.time_s}


def _grouped(values: Iterable[tuple[Series, Any]]) -> dict[str, list[list[Any]]]:
    groups: dict[str, list[list[Any]]] = {}
    for series, value in values:
        groups.setdefault(series[0], []).append([*series[1:], value])
    return groups


def _value(value: Derived) -> Any:
    if isinstance(value, Rate):
        return list(value if value.aggregated_per_s is not None else value[:2])
    if isinstance(value, Buckets):
        return _histogram(value)
    if isinstance(value, str) or isfinite(value):
        return value
    return [_number(value)]


def _number(value: float) -> float | str:
    if isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _histogram(buckets: Buckets) -> dict[str, Any]:
    filled = [[index, count] for index, count in enumerate(buckets.counts) if count]
    length = len(buckets.upper_bounds)
    if not buckets.low:
        for unit, fits in ((_SECONDS, length in TIMER_UNITS_S), (_COUNT, 2 <= length <= MAX_BUCKETS)):
            if fits and buckets.upper_bounds == upper_bounds_of(unit, length):
                return {"unit": unit, "length": length, "filled": filled}
    return {"edges": list(buckets.upper_bounds[:-1]), "low": buckets.low, "filled": filled}


def _sample(content: Mapping[str, Any]) -> Sample:
    tick = content["tick"]
    missed = tick.get("missed", 0)
    if not isinstance(missed, int) or missed < 0:
        raise MalformedSampleError("has an invalid number of missed ticks")
    age_s = content.get("age_s")
    return Sample(
        _text(content["node"]),
        Tick(_finite(tick["time_s"]), _finite(tick.get("late_s", 0)), missed, _finite(tick.get("suspended_s", 0))),
        _ungrouped(content.get("values", {}), _derived),
        {_text(source): _finite(elapsed_s) for source, elapsed_s in content.get("elapsed_s", {}).items()},
        tuple(_decoded_event(event) for event in content.get("events", ())),
        _ungrouped(content.get("held", {}), _derived),
        None if age_s is None else _finite(age_s),
        _ungrouped(content.get("spread", {}), _pair),
    )


def _decoded_event(event: Mapping[str, Any]) -> Event:
    time_s = event.get("time_s")
    return Event(_text(event["kind"]), _text(event["text"]), None if time_s is None else _finite(time_s))


def _ungrouped(groups: Mapping[str, Any], decode: Callable[[Any], Decoded]) -> dict[Series, Decoded]:
    values = {(name, *row[:-1]): decode(row[-1]) for name, rows in groups.items() for row in rows}
    try:
        # Faster than checking the type of each name and label.
        "".join(chain.from_iterable(values))
    except TypeError:
        raise MalformedSampleError("has a name or a label that is not a string") from None
    return values


def _derived(value: Any) -> Derived:
    if isinstance(value, list):
        if len(value) == 2:
            # Almost all values are rates of one node.
            increase, elapsed_s = value
            are_numbers = type(increase) in _NUMBERS and type(elapsed_s) in _NUMBERS
            if are_numbers and -inf < increase < inf and 0 < elapsed_s < inf:
                return Rate(float(increase), float(elapsed_s))
        if len(value) == 1:
            return _NOT_FINITE[value[0]]
        increase, elapsed_s, *aggregated = map(_finite, value)
        if elapsed_s <= 0 or len(aggregated) > 1:
            raise MalformedSampleError("has an invalid rate")
        return Rate(increase, elapsed_s, *aggregated)
    if isinstance(value, dict):
        return _buckets(value)
    return value if isinstance(value, str) else _finite(value)


def _buckets(content: Mapping[str, Any]) -> Buckets:
    if "edges" in content:
        upper_bounds, low = (*map(_finite, content["edges"]), inf), _finite(content["low"])
        if any(a >= b for a, b in pairwise(upper_bounds)):
            raise MalformedSampleError("has a histogram whose upper bounds are not in ascending order")
    else:
        upper_bounds, low = _layout(content["unit"], content["length"]), 0.0
    counts: list[float] = [0] * len(upper_bounds)
    length = len(counts)
    for index, count in content["filled"]:
        is_valid = type(index) is int and 0 <= index < length and type(count) in _NUMBERS and 0 < count < inf
        if not is_valid or counts[index]:
            raise MalformedSampleError("has a histogram with an invalid bucket")
        counts[index] = count
    return Buckets(upper_bounds, tuple(counts), low)


def _layout(unit: Any, length: Any) -> tuple[float, ...]:
    if type(length) is not int or not 2 <= length <= MAX_BUCKETS or unit not in (_SECONDS, _COUNT):
        raise MalformedSampleError("has a histogram with an unknown layout")
    try:
        return upper_bounds_of(unit, length)
    except LayoutError as error:
        raise MalformedSampleError(f"has a histogram of {error}") from None


def _pair(value: Any) -> tuple[float, float]:
    least, most = (_NOT_FINITE[bound] if isinstance(bound, str) else _finite(bound) for bound in value)
    return least, most


def _finite(value: Any) -> float:
    if type(value) not in _NUMBERS or not isfinite(value):
        raise MalformedSampleError(f"has {str(value)[:20]!r} instead of a number")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise MalformedSampleError("has a name or a text value that is not a string")
    return value
