"""The lines of client results over time: throughput and p99."""

from collections.abc import Sequence

from collector.load_results.client_result import ClientResult
from exporters.report.charts.time_chart import MS, OPERATIONS_PER_S, TimeLine
from exporters.results.summary.client_values import client_points, with_breaks, without_rests


def client_lines(results: Sequence[ClientResult], begin_s: float, end_s: float, step_s: float) -> list[TimeLine]:
    """Return the client's throughput and p99 in a time range; [] if no result has intervals in it.

    The points are those of `client_points` that no gap shortens. The p99 is that of the response time or, if this is
    unknown throughout, of the service time.
    """
    points = with_breaks(without_rests(client_points(results, begin_s, end_s, step_s), step_s))
    if not points:
        return []
    begins, times = [point.begin_s for point in points], [point.end_s for point in points]
    kind = "response" if any("response" in point.p99_ms for point in points) else "service"
    return [
        TimeLine("client operations", OPERATIONS_PER_S, "client", begins, times, [point.ops_per_s for point in points]),
        TimeLine(
            f"client p99 ({kind} time)", MS, "client", begins, times, [point.p99_ms.get(kind) for point in points]
        ),
    ]
