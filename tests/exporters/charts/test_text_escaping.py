"""Text escaping: gnuplot prints quoted strings unchanged and never executes them."""

import re
import subprocess
from pathlib import Path
from shutil import which

from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.charts.plot_style import heading, hypertext, quoted, shortened, width_px, wrapped
from exporters.texts import shown
from tests.examples import examples

GNUPLOT = which("gnuplot") or "gnuplot"
letters = st.one_of(st.characters(), st.sampled_from("'\"\\`@{}#$%!;~^_&<>\n\r\t\0\x1b\u202e\ud800"))
texts = st.text(letters, max_size=40)


@given(texts)
def test_a_quoted_string_has_quotes_only_at_its_ends(text: str) -> None:
    assert re.fullmatch(r"'[^'\n]*'", quoted(text))
    assert quoted(text).isprintable()


@given(st.lists(texts))
def test_a_hover_text_contains_no_quotes(lines: list[str]) -> None:
    inside = hypertext(lines)[1:-1].replace(r"\n", "")
    assert not set(inside) & set("'\"\\`")
    assert inside.isprintable()


@given(texts)
def test_a_heading_is_one_cell(text: str) -> None:
    assert not set(heading(text)) & set('"\t\n')


@given(texts, st.integers(1, 60))
def test_cleaned_text_is_within_the_limit(text: str, most: int) -> None:
    assert len(shown(text, most)) <= most


@given(texts, st.floats(0, 300))
def test_shortened_text_fits_the_width(text: str, room: float) -> None:
    assert width_px(shortened(text, 8, room), 8) <= room


@given(texts, st.floats(30, 300), st.integers(1, 4))
def test_wrapped_text_fits_the_width_and_the_number_of_lines(text: str, room: float, most: int) -> None:
    lines = wrapped(text, 8, room, most)
    assert len(lines) <= most
    assert all(width_px(line, 8) <= room for line in lines)


def test_text_that_fits_is_unchanged() -> None:
    assert shortened("node-1", 8, 100) == "node-1"
    assert wrapped("one two three", 8, 1000, 4) == ["one two three"]


@settings(max_examples=examples(15))
@given(strings=st.lists(texts, min_size=10, max_size=40))
def test_gnuplot_prints_every_quoted_string_unchanged(strings: list[str]) -> None:
    script = "".join(f"print {quoted(text)}\n" for text in strings)
    result = subprocess.run([GNUPLOT, "-d"], input=script.encode(), capture_output=True, check=True)
    assert result.stdout == b""
    assert result.stderr.decode() == "".join(f"{quoted(text)[1:-1]}\n" for text in strings)


def test_commands_in_strings_are_not_executed(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    commands = [f"`touch {proof}`", f"$(touch {proof})", f"system('touch {proof}')", f"!touch {proof}"]
    frames = ("{}", "''{}", "''' {}", "a'';{};'", "\n{}\n", "'\n{}\n#", "\\'; {} #", '"; {} #', "x'''';{}\\")
    texts = [frame.format(command) for frame in frames for command in commands]
    script = "".join(f"set label {quoted(text)}\nprint {quoted(text)}\n" for text in texts)
    result = subprocess.run([GNUPLOT, "-d"], input=script.encode(), capture_output=True, check=True)
    assert len(result.stderr.decode().splitlines()) == len(texts)
    assert not proof.exists()
