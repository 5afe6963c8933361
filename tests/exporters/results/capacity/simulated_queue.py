"""A simulated server with one queue, and load generators that measure it, with a known capacity.

Service times are exponential. With an open loop, arrivals are a Poisson process, so response times are exponential with
the rate `SERVICE_RATE - rate` (M/M/1 queue), and the capacity for an objective on a percentile is known exactly.
"""

from heapq import heapify, heapreplace
from math import log

import numpy as np

from exporters.results.capacity.step_verdict import StepData
from exporters.results.comparison.amounts import ALL, ClientBins
from exporters.results.comparison.inference import Array
from exporters.rows.columns import Cell

SERVICE_RATE = 500.0
WORKERS = 8
LIMIT_MS = 30.0
OPEN_CAPACITY = SERVICE_RATE - log(100) / (LIMIT_MS / 1000)
"""The rate at which the 99th percentile of the response time is LIMIT_MS."""
CLOSED_SERVICE_RATE = CLOSED_CAPACITY = 150.0
"""The highest rate that workers can achieve if the server is never idle."""


def open_loop(rate: float, length_s: float, generator: np.random.Generator) -> StepData:
    """Return what a load generator measures that sends requests at random times, whether or not others are answered."""
    count = generator.poisson(rate * length_s)
    arrivals_s = np.sort(generator.random(count)) * length_s
    services_s = generator.exponential(1 / SERVICE_RATE, count)
    work_s = services_s.cumsum()
    ends_s = work_s + np.maximum.accumulate(arrivals_s - work_s + services_s)
    return _step_data(ends_s, ends_s - arrivals_s, length_s, "response")


def closed_loop(rate: float, length_s: float, generator: np.random.Generator) -> StepData:
    """Return what WORKERS measure that send requests on schedule, but each only after its previous one is answered."""
    period_s = WORKERS / rate
    due = [(number * period_s / WORKERS, number) for number in range(WORKERS)]
    heapify(due)
    free_s, ends_s, times_s = 0.0, [], []
    scheduled_s = [time_s for time_s, _ in sorted(due, key=lambda entry: entry[1])]
    services_s = iter(
        generator.exponential(1 / CLOSED_SERVICE_RATE, int(3 * CLOSED_SERVICE_RATE * length_s) + WORKERS).tolist()
    )
    while due[0][0] < length_s:
        begin_s, worker = due[0]
        free_s = max(free_s, begin_s) + next(services_s)
        ends_s.append(free_s)
        times_s.append(free_s - begin_s)
        scheduled_s[worker] += period_s
        heapreplace(due, (max(scheduled_s[worker], free_s), worker))
    return _step_data(np.array(ends_s), np.array(times_s), length_s, "service")


def _step_data(ends_s: Array, times_s: Array, length_s: float, kind: str) -> StepData:
    inside = ends_s < length_s
    rows = ends_s[inside].astype(np.int64)
    latencies_ns = (times_s[inside] * 1e9).astype(np.int64)
    bins = int(length_s)
    numbers = np.ones(len(rows), np.int64)
    completed = np.bincount(rows, minlength=bins).astype(float)
    values: dict[str, Cell] = {
        "client_ops_per_s": float(completed.sum() / length_s),
        "client_errors_per_s": 0.0,
        "client_error_share": 0.0,
        "client_latency": kind,
        "client_p99_ms": float(np.quantile(latencies_ns, 0.99)) / 1e6,
    }
    counts = np.stack((rows, latencies_ns, numbers))
    return StepData(values, {ALL: ClientBins(np.ones(bins), completed, np.zeros(bins), counts)})
