"""The table of a comparison says when only the correction for several comparisons makes a difference insignificant."""

import json
from collections.abc import Sequence

from exporters.results.comparison.comparison import Comparison, Report, corrected
from exporters.results.comparison.comparison_output import MAX_CHARS, NOT_CORRECTED, comparison_json, comparison_lines
from exporters.results.comparison.inference import Difference

LONG = "client_a_very_long_name_of_an_operation_"


def report(*p_values: float) -> Report:
    compared = [
        Comparison("main", f"{LONG}p{number}_ms", Difference(100.0, 148.0, 0.48, 0.28, 0.71, p))
        for number, p in enumerate(p_values)
    ]
    return Report(["a"], ["b"], [], corrected(compared), [])


def cells_of(lines: Sequence[str]) -> list[str]:
    return [line.split()[-1] for line in lines if "148" in line]


def test_a_difference_that_only_the_correction_makes_insignificant_is_marked_and_explained() -> None:
    lines = list(comparison_lines(report(0.01, 0.0001, 0.9, *[0.6] * 9)))
    assert cells_of(lines)[:4] == [NOT_CORRECTED, "yes", "no", "no"]
    assert "correction for 12 comparisons" in " ".join(lines[-2:])
    assert max(map(len, lines)) <= MAX_CHARS


def test_without_such_a_difference_there_is_no_explanation() -> None:
    for p_values in ((0.0001, 0.9), (0.01,), (0.9,)):
        lines = list(comparison_lines(report(*p_values)))
        assert not any("*" in line for line in lines)


def test_json_states_the_significance_with_and_without_the_correction() -> None:
    first, second = json.loads(comparison_json(report(0.03, 0.9)))["comparisons"]
    assert (first["significant"], first["significant_without_correction"]) == (False, True)
    assert (second["significant"], second["significant_without_correction"]) == (False, False)


def test_long_names_of_columns_are_shortened_where_they_do_not_differ() -> None:
    names = [line.split()[0] for line in comparison_lines(report(0.9, 0.9)) if "148" in line]
    assert [name[-6:] for name in names] == ["_p0_ms", "_p1_ms"]
