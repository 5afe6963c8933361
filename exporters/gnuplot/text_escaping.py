"""Words from outside, made fit for a script: gnuplot and an SVG's own script take some letters for commands."""

from collections.abc import Iterable
from unicodedata import east_asian_width

from collector.printable import printable

# gnuplot understands a doubled quote inside single quotes, but not at their beginning, nor two of them in a row: what
# follows would be commands. So there is none.
_APOSTROPHE = str.maketrans({"'": "\u2019"})
# What would end the string of JavaScript, or the attribute around it, that gnuplot's SVG keeps hover texts in.
_LOOKALIKES = str.maketrans({"'": "\u2019", '"': "\u201d", "\\": "\u29f5", "`": "\u2018"})
# DejaVu Sans, which is among the widest: what fits with it fits with the others.
_LETTER_PX = 0.6
_PX_PER_POINT = 4 / 3
_MOST_LETTERS = 500


def cleaned(text: str, most: int = _MOST_LETTERS) -> str:
    """Return the text as one line of printable letters, at most `most` of them: the rest is an ellipsis."""
    line = printable(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


def quoted(text: str) -> str:
    """Return the text as a string of gnuplot. In single quotes nothing but the quote itself has a meaning."""
    return f"'{cleaned(text).translate(_APOSTROPHE)}'"


def hovered(lines: Iterable[str]) -> str:
    r"""Return lines as a hypertext of gnuplot; the `\n` between them is read by the script inside the SVG."""
    return "'" + r"\n".join(cleaned(line, 120).translate(_LOOKALIKES) for line in lines) + "'"


def heading(text: str) -> str:
    """Return the text as the name of a column in a data file: gnuplot reads quotes there as its own."""
    return cleaned(text, 80).replace('"', "”")


def width_px(text: str, points: float) -> float:
    """Return about how wide the text is in letters of this size."""
    letters = sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
    return letters * _LETTER_PX * _PX_PER_POINT * points


def shortened(text: str, points: float, room_px: float) -> str:
    """Return the text, cut to the room there is; "" where not even three letters would fit."""
    text = cleaned(text)
    if width_px(text, points) <= room_px:
        return text
    while text and width_px(text + "…", points) > room_px:
        text = text[:-1]
    return f"{text.rstrip()}…" if len(text) > 2 else ""


def wrapped(text: str, points: float, room_px: float, most: int) -> list[str]:
    """Return the text as at most `most` lines that fit, broken between words; what is too much ends in an ellipsis."""
    lines: list[str] = []
    for word in cleaned(text, 4 * _MOST_LETTERS).split():
        joined = f"{lines[-1]} {word}" if lines else ""
        if joined and width_px(joined, points) <= room_px:
            lines[-1] = joined
        else:
            lines.append(shortened(word, points, room_px))
    if len(lines) > most:
        lines = [*lines[: most - 1], shortened(f"{lines[most - 1]} {lines[most]} …", points, room_px)]
    return lines
