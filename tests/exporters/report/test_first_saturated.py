"""The verdict states what limited the run, that nothing did, or why this is undetermined."""

from dataclasses import replace

from exporters.report.verdict import saturation_text
from exporters.results.saturation.saturation import CPU, GENERATOR, NETWORK, Finding, HotTable, Saturation
from tests.every import every
from tests.exporters.charts.runs import BEGIN_S

FIRST = Finding(CPU, "n1", BEGIN_S, {"cpu_busy": 0.97})


@every(
    ("result", "text"),
    [
        (Saturation(None, (), ()), "Nothing was saturated."),
        (
            Saturation(None, (), (CPU, GENERATOR)),
            "What saturated first is undetermined (not measured on all hosts: CPU, load generator).",
        ),
        (
            Saturation(None, (), (NETWORK,)),
            "Nothing was saturated (the network's capacity is unknown on at least one host).",
        ),
        (
            Saturation(None, (), (CPU, NETWORK)),
            "What saturated first is undetermined (not measured on all hosts: CPU; "
            "the network's capacity is unknown on at least one host).",
        ),
        (
            Saturation(None, (), (), queued=1234.0),
            "What saturated first is undetermined (1,234 requests were waiting in thread pools).",
        ),
    ],
)
def test_a_run_that_no_resource_limits(result: Saturation, text: str) -> None:
    assert saturation_text(result, 0) == text


def test_the_limiting_resource_is_named_even_if_others_were_not_measured() -> None:
    text = saturation_text(Saturation(FIRST, (FIRST,), (GENERATOR,)), 0)
    assert text.startswith("Limited first by: CPU (n1), from ")
    assert text.endswith(": 97% of its processors busy.")


def test_the_table_with_most_of_the_operations_is_a_detail_of_the_resource() -> None:
    first = replace(FIRST, hot_table=HotTable("ks", "users", 0.934))
    text = saturation_text(Saturation(first, (first,), ()), 0)
    assert text.endswith(
        ": 97% of its processors busy; 93% of the local reads and writes on recorded tables were on ks.users."
    )
