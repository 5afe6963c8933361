"""The series of load generators are valid expositions with a bounded number of series."""

import pytest

from collector.load_results.client_result import ClientInterval, Latency
from collector.load_results.parsing import MAX_LABELS
from exporters.metrics_page.load_series import LoadSeries
from tests.exporters.metrics_page.parsed import parsed

NAME = "casstat_load_operation_duration_seconds"


@pytest.mark.parametrize("openmetrics", [False, True])
def test_response_times_replace_service_times_as_one_operation(openmetrics: bool) -> None:
    series = LoadSeries('c"1')
    one, ten = Latency({1_000_000: 2}), Latency({10_000_000: 2})
    labels = {"cluster": 'c"1', "client": "f", "operation": "Read"}
    series.add("f", "READ", ClientInterval(0.0, 1.0, 2, {"": 1, "x": 2}, None, one))
    page = parsed(series.metrics(openmetrics=openmetrics).decode(), openmetrics=openmetrics)
    assert page.of(f"{NAME}_count", **labels, latency="service") == 2
    series.add("f", "read", ClientInterval(0.0, 1.0, 2, {}, ten, None))
    page = parsed(series.metrics(openmetrics=openmetrics).decode(), openmetrics=openmetrics)
    assert page.of("casstat_load_operations_total", **labels) == 2
    assert page.of("casstat_load_errors_total", **labels, error="x") == 2
    assert page.of(f"{NAME}_count", **labels, latency="service") is None
    assert page.of(f"{NAME}_sum", **labels, latency="response") == pytest.approx(0.02)
    assert page.of(f"{NAME}_bucket", **labels, latency="response", le="0.005") == 0
    assert page.of(f"{NAME}_bucket", **labels, latency="response", le="0.01") == 2


def test_operations_and_kinds_of_errors_are_bounded_and_a_client_can_begin_again() -> None:
    series = LoadSeries("c")
    for index in range(3 * MAX_LABELS):
        series.add("f", f"operation {index}", ClientInterval(0.0, 1.0, 0, {f"kind {index}": 1}))
    names = [name for name, _ in parsed(series.metrics(openmetrics=False).decode()).values]
    assert names.count("casstat_load_operations_total") == MAX_LABELS + 1
    errors = parsed(series.metrics(openmetrics=False).decode()).values
    assert sum(value for (name, _), value in errors.items() if name == "casstat_load_errors_total") == 3 * MAX_LABELS
    series.begin("f")
    assert "operation 1" not in series.metrics(openmetrics=False).decode()
