"""Messages have the same form everywhere: hints are in parentheses."""

import re
from pathlib import Path

import pytest

from cli.errors import with_one_hint

ROOT = Path(__file__).parent.parent
PACKAGES = ("collector", "exporters", "dashboards", "cli")
# Not an annotation.
HINT = re.compile(r"\bhint: (?!str\b|Hint\b)")
# The quote is the beginning of a text; the closing parenthesis ends a part of a regular expression.
HINT_IN_PARENTHESES = re.compile(r"[\"' )]\\?\(hint: ")


@pytest.mark.parametrize("package", PACKAGES)
def test_hints_are_in_parentheses(package: str) -> None:
    """The form of a message is "context: cause (hint: advice)"."""
    lines = [line for path in (ROOT / package).rglob("*.py") for line in path.read_text().splitlines()]
    hints = [line for line in lines if HINT.search(line)]
    assert hints
    assert [line for line in hints if HINT.search(HINT_IN_PARENTHESES.sub("", line))] == []


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("a: b", "a: b"),
        ("a: b (hint: c)", "a: b (hint: c)"),
        ("a: b (hint: run 'x' (as root)) (hint: d)", "a: b (hint: run 'x' (as root); d)"),
        ("no node: a: b (hint: c); d: e (hint: c)", "no node: a: b; d: e (hint: c)"),
    ],
)
def test_a_message_that_quotes_others_has_one_hint(message: str, wanted: str) -> None:
    assert with_one_hint(message) == wanted
