"""Values of runs, and a table of a sweep, for tests."""

from collections.abc import Sequence

from collector.load_results.client_result import Latency
from exporters.results.sweep.sweep_rows import CLIENT, Outcome, RunValues, SweepTable, sweep_table

NS_PER_MS = 1_000_000


def client_run(
    ops_per_s: float | None,
    whole_ops_per_s: float | None = None,
    *,
    errors: int = 0,
    latencies_ms: Sequence[int] = (1,),
) -> RunValues:
    """Return the values of a run with one operation for each of the latencies."""
    counts: dict[int, int] = {}
    for latency_ms in latencies_ms:
        counts[latency_ms * NS_PER_MS] = counts.get(latency_ms * NS_PER_MS, 0) + 1
    latency = Latency(counts)
    mean_s = latency.mean_s or 0.0
    number = len(latencies_ms)
    return RunValues(
        CLIENT, ops_per_s, whole_ops_per_s, number, number + errors, errors, 1000 * mean_s, "service", latency
    )


def outcome(ops_per_s: float, whole_ops_per_s: float | None = None, errors: int = 0) -> RunValues:
    latencies_ms = [1 + number % 10 for number in range(1000)]
    return client_run(ops_per_s, whole_ops_per_s, errors=errors, latencies_ms=latencies_ms)


def hostile_table() -> SweepTable:
    """Return a table with hostile values, failed and missing runs, errors, and a run that has not converged."""
    combinations = [{"c": c, "level": level} for c in ("1", "5", "100") for level in ("ONE", "'; exit \"|<b>$(x)`")]
    outcomes: list[list[Outcome]] = [
        [outcome(1000, 990), outcome(1040, 1050)],
        [outcome(900, 700), outcome(910, 705)],
        [outcome(3000.5, 2990), "the command failed with exit status 7: a|b"],
        ["no node can be recorded", "x"],
        [outcome(9000, 8990, errors=100), outcome(9100, 9100, errors=90)],
        [],
    ]
    return sweep_table('load\'s "x"', combinations, outcomes, 2)


def batch_table() -> SweepTable:
    """Return a table whose throughput is in items: a batch of 1 has the most operations, one of 50 the most items.

    A batch of 200 would have even more items, but has errors.
    """
    combinations = [{"c": c, "batch": batch} for c in ("4", "16") for batch in ("1", "2.5", "50", "200")]
    outcomes = [
        [outcome(1000, 1000), outcome(1010, 1010)],
        [outcome(600), outcome(604)],
        [outcome(90, 80), outcome(94, 84)],
        [outcome(21)],
        [outcome(3000, 2990), outcome(3020, 3010)],
        [],
        [outcome(250), outcome(254)],
        [outcome(100, errors=100), outcome(104, errors=90)],
    ]
    return sweep_table("load", combinations, outcomes, 2, "batch")
