"""Checks many similar cases in one test, because thousands of tests cost more time than what they check."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

# A failure of this many cases is not understood better with more of them.
MAX_SHOWN = 20

Test = Callable[..., None]


def every(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for each case, and list all cases that fail; use it like `pytest.mark.parametrize`.

    Fixtures are shared by all cases.
    """
    words = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    values = list(cases)
    assert values

    def decorated(test: Test) -> Test:
        @wraps(test)
        def checked(**fixtures: Any) -> None:
            failures = []
            for value in values:
                arguments = dict(zip(words, value if len(words) > 1 else [value], strict=True))
                try:
                    test(**fixtures, **arguments)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(f"{arguments!r:.300}: {type(error).__name__}: {error}")
            assert not failures, "\n".join([f"{len(failures)} of {len(values)} cases fail:", *failures[:MAX_SHOWN]])

        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in words]
        checked.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return checked

    return decorated
