"""The line's rows and averages as they are printed."""

from dataclasses import replace

import pytest

from cli.output import Output, print_rows
from collector.model import Sample, Tick
from exporters.view import View
from tests.exporters.samples import TIME_S, busy, plain

MACHINE = {"cpu", "disk"}


def run_of(answers: str) -> list[Sample]:
    """Return one sample a second: "+" for an interval with data from Cassandra, "-" for one without."""
    samples = []
    for second, answer in enumerate(answers):
        names = {"cassandra", *MACHINE} if answer == "+" else MACHINE
        sample = replace(busy(), tick=Tick(TIME_S + second), elapsed_s=dict.fromkeys(names, 1.0), events=())
        samples.append(sample)
    return samples


def printed(samples: list[Sample], view: View, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_rows(samples, lambda _: view, 1.0, Output("text", None, header=True))
    return capsys.readouterr().out.splitlines()


def test_the_averages_list_no_compactions(capsys: pytest.CaptureFixture[str]) -> None:
    _, first, _, average = printed(run_of("++"), plain(compactions=True), capsys)
    assert first.endswith("Pen/2 Min/58% Val/10%")
    assert average.endswith("  Pen/2  # average over 2.0 s")


@pytest.mark.parametrize(
    ("answers", "coverage"),
    [
        ("+++", "average over 3.0 s"),
        ("++" + 18 * "-" + "+", "average over 3.0 s: 3 of 21 intervals had data from Cassandra"),
        ("+-", "average over 1.0 s: 1 of 2 intervals had data from Cassandra"),
        ("---", "average over 3.0 s"),
    ],
)
def test_the_averages_say_how_much_of_the_run_they_cover(
    answers: str, coverage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(run_of(answers), plain(), capsys)[-1].partition("  # ")[2] == coverage


def test_a_row_over_a_gap_counts_as_all_of_the_intervals_it_covers(capsys: pytest.CaptureFixture[str]) -> None:
    *before, last = run_of("+----+")
    last = replace(last, elapsed_s=dict(last.elapsed_s) | {"cassandra": 5.0})
    assert printed([*before, last], plain(), capsys)[-1].endswith("# average over 6.0 s")


def test_a_node_elsewhere_counts_its_intervals_without_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    samples = run_of("+--")
    remote = [
        replace(each, elapsed_s={k: v for k, v in each.elapsed_s.items() if k not in MACHINE}) for each in samples
    ]
    assert printed(remote, plain(), capsys)[-1].endswith("average over 1.0 s: 1 of 3 intervals had data from Cassandra")
