"""JSON in casstat's own formats is read strictly, and an error states the wrong value and where it is."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from collector.stored_json import read_content, value_of


@dataclass(frozen=True)
class Part:
    count: int
    share: float | None = None


@dataclass(frozen=True)
class Whole:
    name: str
    parts: tuple[Part, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    is_open: bool = False
    groups: Mapping[str, Part] = field(default_factory=dict)


class WrongError(ValueError):
    pass


def require_parts(whole: Whole) -> None:
    if len(whole.parts) > 2:
        raise ValueError("too many parts\n")


def read(folder: Path, text: str) -> Whole:
    (folder / "file.json").write_text(text)
    return value_of(read_content(folder / "file.json", WrongError), Whole, WrongError, require_parts)


@pytest.mark.parametrize("number", ["600", "600.0", "6e2"])
def test_whole_numbers_are_counts_and_numbers(number: str, tmp_path: Path) -> None:
    part = f'{{"count": {number}, "share": {number}, "later": [1.5]}}'
    whole = read(tmp_path, f'{{"name": "a", "parts": [{part}]}}')
    assert whole == Whole("a", (Part(600, 600.0),))
    assert isinstance(whole.parts[0].count, int)
    assert isinstance(whole.parts[0].share, float)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ('"name": 1', "1 is not a string (at name)"),
        ('"name": "a", "parts": {}', "{} is not a list (at parts)"),
        ('"name": "a", "parts": [1]', "1 is not an object (at parts[0])"),
        ('"name": "a", "parts": [{"count": 1}, {"share": 1}]', "'count' (at parts[1])"),
        ('"name": "a", "parts": [{"count": 1.5}]', "1.5 is not a count (at parts[0].count)"),
        ('"name": "a", "parts": [{"count": true}]', "True is not a count (at parts[0].count)"),
        ('"name": "a", "parts": [{"count": 1, "share": "1"}]', "1 is not a number (at parts[0].share)"),
        ('"name": "a", "parts": [{"count": 1, "share": NaN}]', "NaN is not a number (at parts[0].share)"),
        ('"name": "a", "parts": [{"count": 1, "share": 1e999}]', "1e999 is not a number (at parts[0].share)"),
        (
            f'"name": "a", "parts": [{{"count": 1, "share": 1{"0" * 400}}}]',
            "int too large to convert to float (at parts[0].share)",
        ),
        ('"name": "a", "tags": {"b": 1}', "a value is not a string (at tags[...])"),
        ('"name": "a", "groups": {"b": {"count": "x"}}', "a value is not a count (at groups[...].count)"),
        ('"name": "a", "is_open": 1', "1 is not true or false (at is_open)"),
        ('"name": "a", "parts": [{"count": 1}, {"count": 1}, {"count": 1}]', "too many parts"),
        ('"parts": []', "'name'"),
    ],
)
def test_an_error_states_the_value_and_where_it_is(fields: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(WrongError) as caught:
        read(tmp_path, f"{{{fields}}}")
    assert str(caught.value) == f"malformed field: {reason}"


def test_sampling_and_the_agent_do_not_load_the_reader() -> None:
    loads = "import sys, cli.agent.agent_program, cli.line.line_program, cli.record.ssh.remote_spool"
    check = "sys.exit('msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", f"{loads}; {check}"], check=False).returncode == 0
