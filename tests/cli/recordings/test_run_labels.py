"""Overlaid runs are labelled with the words in which their names differ."""

from hypothesis import given
from hypothesis import strategies as st

from cli.recordings.plot_program import distinguishing_words

WORDS = st.lists(st.sampled_from(["load", "a=1", "a=2", "b=1", "r1", "r2"]), min_size=1, max_size=4).map(" ".join)


def test_the_runs_of_a_sweep_are_labelled_with_the_parameters_in_which_they_differ() -> None:
    names = [f"latte threads=1 concurrency={count} size=100 r1" for count in (2, 16)]
    assert distinguishing_words(names) == ["concurrency=2", "concurrency=16"]


def test_a_name_that_would_be_empty_or_ambiguous_stays_as_it_is() -> None:
    assert distinguishing_words(["load", "load r1"]) == ["load", "load r1"]
    assert distinguishing_words(["load"]) == ["load"]


@given(st.lists(WORDS, min_size=1, max_size=5, unique=True))
def test_labels_are_distinct_and_not_empty(names: list[str]) -> None:
    labels = distinguishing_words(names)
    assert len(set(labels)) == len(names)
    assert all(labels)
