"""A run's name is acceptable to agents, whatever it is derived from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.runs.run_texts import MAX_NAME_CHARS, accepted_name, require_accepted


@pytest.mark.parametrize(
    ("text", "name"),
    [("load.sh", "load.sh"), ("", "run"), (" \t", "run"), ("a\tb", "a b"), ("\udcff", "?"), ("x" * 101, "x" * 100)],
)
def test_a_name_is_derived_from_any_text(text: str, name: str) -> None:
    assert accepted_name(text) == name


@given(st.text() | st.text("x \t", min_size=90, max_size=220))
def test_a_derived_name_is_accepted(text: str) -> None:
    require_accepted("name", accepted_name(text), MAX_NAME_CHARS)
