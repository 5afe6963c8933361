"""Words from outside: gnuplot prints what was meant, and nothing of them is ever a command."""

import re
import subprocess
from pathlib import Path
from shutil import which

from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.gnuplot.text_escaping import cleaned, heading, hypertext, quoted, shortened, width_px, wrapped

GNUPLOT = which("gnuplot") or "gnuplot"
letters = st.one_of(st.characters(), st.sampled_from("'\"\\`@{}#$%!;~^_&<>\n\r\t\0\x1b\u202e\ud800"))
texts = st.text(letters, max_size=40)


@given(texts)
def test_a_string_has_no_quote_but_its_own(text: str) -> None:
    assert re.fullmatch(r"'[^'\n]*'", quoted(text))
    assert quoted(text).isprintable()


@given(st.lists(texts))
def test_a_hover_text_ends_neither_the_string_nor_the_attribute_it_is_in(lines: list[str]) -> None:
    inside = hypertext(lines)[1:-1].replace(r"\n", "")
    assert not set(inside) & set("'\"\\`")
    assert inside.isprintable()


@given(texts)
def test_a_heading_is_one_cell(text: str) -> None:
    assert not set(heading(text)) & set('"\t\n')


@given(texts, st.integers(1, 60))
def test_cleaned_text_is_no_longer_than_it_may_be(text: str, most: int) -> None:
    assert len(cleaned(text, most)) <= most


@given(texts, st.floats(0, 300))
def test_what_is_shortened_fits(text: str, room: float) -> None:
    assert width_px(shortened(text, 8, room), 8) <= room


@given(texts, st.floats(30, 300), st.integers(1, 4))
def test_what_is_wrapped_fits(text: str, room: float, most: int) -> None:
    lines = wrapped(text, 8, room, most)
    assert len(lines) <= most
    assert all(width_px(line, 8) <= room for line in lines)


def test_what_has_room_is_left_as_it_is() -> None:
    assert shortened("node-1", 8, 100) == "node-1"
    assert wrapped("one two three", 8, 1000, 4) == ["one two three"]


@settings(max_examples=15)
@given(many=st.lists(texts, min_size=10, max_size=40))
def test_gnuplot_reads_every_string_as_it_was_meant(many: list[str]) -> None:
    script = "".join(f"print {quoted(text)}\n" for text in many)
    done = subprocess.run([GNUPLOT, "-d"], input=script.encode(), capture_output=True, check=True)
    assert done.stdout == b""
    assert done.stderr.decode() == "".join(f"{quoted(text)[1:-1]}\n" for text in many)


def test_nothing_in_a_string_is_run(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    commands = [f"`touch {proof}`", f"$(touch {proof})", f"system('touch {proof}')", f"!touch {proof}"]
    frames = ("{}", "''{}", "''' {}", "a'';{};'", "\n{}\n", "'\n{}\n#", "\\'; {} #", '"; {} #', "x'''';{}\\")
    texts = [frame.format(command) for frame in frames for command in commands]
    script = "".join(f"set label {quoted(text)}\nprint {quoted(text)}\n" for text in texts)
    done = subprocess.run([GNUPLOT, "-d"], input=script.encode(), capture_output=True, check=True)
    assert len(done.stderr.decode().splitlines()) == len(texts)
    assert not proof.exists()
