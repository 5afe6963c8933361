"""Placeholders are replaced exactly once; whatever does not match is an error in one line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.parameters.parameter_values import NAME, PlaceholderError, filled, placeholders, require_match

NAMES = st.from_regex(NAME, fullmatch=True)
TEXTS = st.text(max_size=30)


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def test_all_occurrences_are_replaced() -> None:
    words = ("load", "--rate={rate}", "{rate}/{batch-size}", "{{rate}}", "{{{rate}}}")
    assert filled(words, {"rate": "10", "batch-size": "2"}) == ("load", "--rate=10", "10/2", "{rate}", "{10}")
    assert placeholders(words) == ("rate", "batch-size")


@given(st.lists(st.one_of(TEXTS, st.tuples(NAMES, TEXTS)), max_size=8))
def test_every_text_can_be_written_and_values_are_not_examined(parts: list[str | tuple[str, str]]) -> None:
    values = dict(part for part in parts if isinstance(part, tuple))
    word = "".join(escaped(part) if isinstance(part, str) else f"{{{part[0]}}}" for part in parts)
    expected = "".join(part if isinstance(part, str) else values[part[0]] for part in parts)
    assert filled([word], values) == (expected,)


@given(st.lists(TEXTS))
def test_words_are_filled_or_refused_in_one_line(words: list[str]) -> None:
    message = ""
    try:
        filled(words, {})
    except PlaceholderError as error:
        message = str(error)
    assert message.isprintable()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("{", "'{': '{' is not part of a placeholder such as {name} (hint: write {{ for a literal brace)"),
        ("a}", "'a}': '}' is not part of a placeholder such as {name} (hint: write }} for a literal brace)"),
        ("{}", "'{}': '{' is not part of"),
        ("{1}", "'{1}': '{' is not part of"),
        ("{rate", "'{rate': '{' is not part of"),
        ("{rate}}", "'{rate}}': '}' is not part of"),
        ("{ rate }", "'{ rate }': '{' is not part of"),
        ('{"a": 1}', "'{\"a\": 1}': '{' is not part of"),
        ("x" * 500 + "{\n" + "y" * 500, "' is not part of"),
        ("{rat}", "unknown placeholder {rat} (hint: did you mean {rate}?)"),
        ("{other}", "unknown placeholder {other} (hint: write {{other}} for a literal {other})"),
    ],
)
def test_a_malformed_or_unknown_placeholder_is_refused(word: str, message: str) -> None:
    with pytest.raises(PlaceholderError, match=re.escape(message)) as caught:
        filled([word], {"rate": "1"})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250


def test_the_command_must_use_all_names_and_no_others() -> None:
    require_match(["{rate}", "{host}"], ["rate"], others=["host", "index"])
    with pytest.raises(PlaceholderError, match=re.escape("does not use {rate} (hint: add it, or omit -P rate)")):
        require_match(["load"], ["rate"])
    with pytest.raises(PlaceholderError, match=re.escape("unknown placeholder {rat} (hint: did you mean {rate}?)")):
        require_match(["{rate}", "{rat}"], ["rate"])
    with pytest.raises(PlaceholderError, match=re.escape("a literal {size}, or define it with -P size=…)")):
        require_match(["{rate}", "{size}"], ["rate"])
