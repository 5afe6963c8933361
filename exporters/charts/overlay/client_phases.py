"""What the clients of overlaid runs saw in each phase."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from collector.load_results.client_result import ClientInterval, ClientResult
from exporters.charts.plot_columns import Values, present
from exporters.charts.plot_data import ClientSeries
from exporters.results.summary.client_values import (
    LATENCY_KINDS,
    ClientPoint,
    client_points,
    latency_of_kind,
    total_within,
    with_breaks,
    without_rests,
)


@dataclass(frozen=True)
class PhaseClient:
    """What the clients of one run saw in one phase.

    points  their times are in seconds since the phase began.
    totals  the total of each operation of each client result.
    """

    points: Sequence[ClientPoint] = ()
    totals: Sequence[ClientInterval] = ()


def phase_client(results: Iterable[ClientResult], begin_s: float, end_s: float, step_s: float) -> PhaseClient:
    """Return what the clients saw from `begin_s` to `end_s`; a point covers about `step_s` or more."""
    known = list(results)
    totals = [total_within(operation, begin_s, end_s) for result in known for operation in result.operations]
    return PhaseClient(
        [_shifted(point, -begin_s) for point in without_rests(client_points(known, begin_s, end_s, step_s), step_s)],
        [total for total in totals if total],
    )


def client_series(phases: Sequence[PhaseClient], begins_s: Sequence[float], measured: Sequence[bool]) -> ClientSeries:
    """Return the phases as one series; they begin at `begins_s`, and the distributions cover those in `measured`."""
    shifted = [
        _shifted(point, begin_s) for phase, begin_s in zip(phases, begins_s, strict=True) for point in phase.points
    ]
    points = with_breaks(shifted)
    totals = [total for phase, counts in zip(phases, measured, strict=True) if counts for total in phase.totals]
    distributions = {kind: latency_of_kind(totals, kind) for kind in LATENCY_KINDS}
    return ClientSeries(
        [point.end_s for point in points],
        [point.ops_per_s for point in points],
        _by_kind([point.mean_ms for point in points]),
        _by_kind([point.p99_ms for point in points]),
        {kind: latency for kind, latency in distributions.items() if latency and latency.counts},
    )


def _by_kind(points: Sequence[Mapping[str, float]]) -> dict[str, Values]:
    """Return the values of consecutive points by kind of latency, without kinds that have no values."""
    values = {kind: [point.get(kind) for point in points] for kind in LATENCY_KINDS}
    return {kind: of_kind for kind, of_kind in values.items() if present(of_kind)}


def _shifted(point: ClientPoint, offset_s: float) -> ClientPoint:
    return replace(point, begin_s=point.begin_s + offset_s, end_s=point.end_s + offset_s)
