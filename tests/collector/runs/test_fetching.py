"""The problems of a fetch are summarised in one line."""

from hypothesis import given
from hypothesis import strategies as st

from collector.agents.fetching import problem_text


@given(st.lists(st.text(max_size=300), min_size=1, max_size=10), st.integers(0, 1 << 30))
def test_problems_are_summarised_in_one_line_that_counts_the_omitted_ones(problems: list[str], unknown: int) -> None:
    text = problem_text(problems, len(problems) + unknown)
    assert len(text) <= 200
    assert text.isprintable()
    if unknown:
        assert text.endswith(" more)")


def test_short_problems_are_all_shown() -> None:
    assert problem_text([], 0) == ""
    assert problem_text(["a", "b"], 2) == "a; b"
    assert problem_text(["a", "b"], 5) == "a; b (and 3 more)"
