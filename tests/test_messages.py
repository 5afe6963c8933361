"""Messages have the same form everywhere: hints are in parentheses."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.errors import with_one_hint

ROOT = Path(__file__).parent.parent
PACKAGES = ("collector", "exporters", "dashboards", "cli")
HINT_IN_PARENTHESES = re.compile(r"(^| |\(\?: \|\^\))\\?\(hint: ")


def texts(path: Path) -> Iterator[str]:
    """Yield a module's string literals, except docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


@pytest.mark.parametrize("package", PACKAGES)
def test_hints_are_in_parentheses(package: str) -> None:
    """The form of a message is "context: cause (hint: advice)"."""
    hints = [text for path in (ROOT / package).rglob("*.py") for text in texts(path) if "hint: " in text]
    assert hints
    assert [text for text in hints if not HINT_IN_PARENTHESES.search(text)] == []


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
