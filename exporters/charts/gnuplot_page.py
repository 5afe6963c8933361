"""A plot as gnuplot reads it: its page with title and footer, the script around its commands, and its data files.

gnuplot runs in the script's directory, without a shell and with a deadline.
"""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from collector.printable import one_line
from exporters.charts.axes import Scale, short
from exporters.charts.plot_data import Columns, MissingNodes, PlotData, Values
from exporters.charts.plot_style import SMALL_PT, SUBTITLE_PT, TEXT_PT, TITLE_PT, Theme, quoted, shortened, wrapped
from exporters.texts import shown

KINDS = ("png", "svg")
TIMEOUT_S = 60.0
_AT_ONCE = 2


class GnuplotError(Exception):
    """A plot could not be drawn; the message is one line with the cause."""


def draw(
    scripts: Sequence[Path],
    *,
    program: str = "gnuplot",
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> list[Path]:
    """Run gnuplot on each script, two at a time; return the image files.

    `environ` is gnuplot's environment; None means that of this process. Raises GnuplotError if gnuplot is missing,
    fails, or takes longer than `timeout_s` for a script; the other plots are still drawn.
    """
    return begin_drawing(scripts, program=program, timeout_s=timeout_s, environ=environ)()


def begin_drawing(
    scripts: Sequence[Path],
    *,
    program: str = "gnuplot",
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> Callable[[], list[Path]]:
    """Run gnuplot on each script in the background; return a function that waits for the image files, like `draw`."""

    def run(script: Path) -> GnuplotError | None:
        try:
            _run(script, program, timeout_s, environ)
        except GnuplotError as error:
            return error
        return None

    pool = ThreadPoolExecutor(_AT_ONCE)
    results = pool.map(run, scripts)

    def wait() -> list[Path]:
        try:
            errors = [error for error in results if error is not None]
        finally:
            pool.shutdown(cancel_futures=True)
        others = len({str(error) for error in errors}) - 1
        if errors:
            raise GnuplotError(f"{errors[0]}{f' (and {others} more)' if others > 0 else ''}")
        return [script.with_suffix(f".{kind}") for script in scripts for kind in KINDS]

    return wait


def _run(script: Path, program: str, timeout_s: float, environ: Mapping[str, str] | None) -> None:
    try:
        # With -d, gnuplot ignores the user's settings.
        done = subprocess.run(
            [program, "-d", script.name],
            cwd=script.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            env=None if environ is None else dict(environ),
            check=False,
        )
    except FileNotFoundError:
        if not script.parent.is_dir():
            raise GnuplotError(f"{script.parent}: no such directory") from None
        raise GnuplotError(
            f"{program}: not found (hint: install the gnuplot-nox package; the scripts and data are in {script.parent})"
        ) from None
    except OSError as error:
        raise GnuplotError(f"{program}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GnuplotError(f"{script}: gnuplot did not finish within {timeout_s:g} s") from None
    if done.returncode:
        message = one_line(_script_errors(done.stderr.decode(errors="replace").splitlines()))
        raise GnuplotError(f"{script}: gnuplot: {message or f'exit code {done.returncode}'}")


def _script_errors(lines: Sequence[str]) -> str:
    """Return gnuplot's error messages without the commands that it prints along with them."""
    messages = [line.strip().partition('" ')[2] for line in lines if re.match(r'\s*"[^"]*",? line \d+: ', line)]
    return "; ".join(messages) or next((line for line in reversed(lines) if line.strip()), "")


TITLE_PX, SUBTITLE_PX, FOOTER_LINE_PX = 32, 20, 14
MARGIN_PX = 12
LEFT_PX = 78
RIGHT_PX = 168
TIME_AXIS_PX = 42
_FOOTER_LINES = 4
# gnuplot's SVG shows a button to the left of the footer.
_FOOTER_LEFT_PX = 34
_FOR_SVG = "fontscale 1.333 mouse standalone"
# gnuplot draws lines across empty fields, but breaks them at NaN.
_MISSING = "NaN"
_LARGE = 1e6
_DIGITS, _EXACT_DIGITS = 6, 13
# With six digits, all percentiles above 99.99995% would become 100%.
_EXACT_COLUMNS = ("percentile",)


@dataclass(frozen=True)
class Drawing:
    """The commands of a plot's script, and its data files, keyed by the middle part of their names.

    The key "" stands for NAME.tsv; any other key, such as "nodes", stands for NAME.nodes.tsv.
    """

    commands: Sequence[str]
    files: dict[str, Columns] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """A rectangle, measured in pixels from the page's left and top edges."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


@dataclass(frozen=True)
class Page:
    """The page on which a run's plot is drawn; sizes are in pixels."""

    run: PlotData
    name: str
    width: int
    height: int
    theme: Theme
    missing: MissingNodes

    @property
    def data(self) -> str:
        """The quoted name of the data file."""
        return f"'{self.name}.tsv'"

    def data_of(self, middle: str) -> str:
        """Return the quoted name of one of several data files; `middle` is a key of `Drawing.files`."""
        return f"'{self.name}.{middle}.tsv'" if middle else self.data

    @property
    def footer(self) -> list[str]:
        text = " · ".join(part for part in self.run.footer if part)
        return wrapped(text, SMALL_PT, self.width - MARGIN_PX - _FOOTER_LEFT_PX, _FOOTER_LINES)

    @property
    def inside(self) -> Box:
        """The area between the title and the footer."""
        below = MARGIN_PX + FOOTER_LINE_PX * len(self.footer)
        return Box(0, TITLE_PX + SUBTITLE_PX, self.width, self.height - below)

    def area(self, above_px: float = 12) -> Box:
        """Return the area of the panels, `above_px` below the title, with room for axes and legends around it."""
        inside = self.inside
        return Box(LEFT_PX, inside.top + above_px, self.width - RIGHT_PX, inside.bottom - TIME_AXIS_PX)

    def x(self, px: float) -> str:
        """Convert pixels from the left edge to a gnuplot screen coordinate."""
        return f"{px / self.width:.4f}"

    def y(self, px: float) -> str:
        """Convert pixels from the top edge to a gnuplot screen coordinate."""
        return f"{1 - px / self.height:.4f}"

    def margins(self, box: Box) -> list[str]:
        """Return the commands that position the next panel."""
        return [
            f"set lmargin at screen {self.x(box.left)}; set rmargin at screen {self.x(box.right)}",
            f"set tmargin at screen {self.y(box.top)}; set bmargin at screen {self.y(box.bottom)}",
        ]

    def label(self, text: str, x: float, y: float, style: str, tag: int | None = None) -> str:
        """Return the command that writes a label; it replaces any earlier label with the same tag."""
        return f"set label {f'{tag} ' if tag else ''}{quoted(text)} at screen {self.x(x)}, screen {self.y(y)} {style}"

    def labels(self, subtitle: str) -> list[str]:
        """Return the commands for the title, subtitle and footer, which are drawn with the first panel."""
        room = self.width - 2 * MARGIN_PX
        title = shortened(self.run.name or self.name, TITLE_PT * 1.1, room)
        lines = [
            self.label(title, MARGIN_PX, TITLE_PX / 2 + 2, "font title_font tc rgb ink"),
            self.label(
                shortened(subtitle, SUBTITLE_PT, room), MARGIN_PX, TITLE_PX + 4, f"font ',{SUBTITLE_PT}' tc rgb faint"
            ),
        ]
        top = self.height - MARGIN_PX / 2 - FOOTER_LINE_PX * (len(self.footer) - 0.5)
        lines += [
            self.label(line, _FOOTER_LEFT_PX, top + FOOTER_LINE_PX * index, f"font ',{SMALL_PT}' tc rgb faint")
            for index, line in enumerate(self.footer)
        ]
        return lines

    def axis(self, box: Box, label: str, scale: Scale, *, numbers: bool = True) -> list[str]:
        """Return the commands for the left axis; its label never overlaps the numbers."""
        return [*self.rotated_label(box, label, box.left - LEFT_PX + 16, 9001), *scale_commands("y", scale, numbers)]

    def rotated_label(self, box: Box, label: str, x: float, tag: int) -> list[str]:
        """Return the command that writes a rotated label beside an axis."""
        y = (box.top + box.bottom) / 2
        return [self.label(label, x, y, "center rotate tc rgb ink", tag)]

    def legend(self, box: Box, beside_px: float = 12) -> list[str]:
        """Return the command that places the legend to the right of the panel."""
        at = f"screen {self.x(box.right + beside_px)}, screen {self.y(box.top)}"
        return [f"set key at {at} left top Left reverse samplen 2.2 spacing 1.1 font ',{SMALL_PT}' tc rgb ink"]

    def colour_box(self, box: Box, values: Sequence[str]) -> list[str]:
        """Return the commands for the colours of a heat map and their box; `values` set up the range of values."""
        stops = ", ".join(f"{index} '{colour}'" for index, colour in enumerate(self.theme.heat_map))
        return [
            f"set palette defined ({stops})",
            *values,
            f"set colorbox user origin {self.x(box.right + 16)},{self.y(box.bottom)}"
            f" size {self.x(16)},{box.height / self.height:.4f} noborder",
        ]


def scale_commands(axis: str, scale: Scale, labels: bool = True) -> list[str]:
    """Return the commands that set up `axis` (x, y or y2); if `labels` is false, the tics have no numbers."""
    span = f"set {axis}range [{scale.low:.6g}:{scale.high:.6g}]"
    # gnuplot rejects a logarithmic axis whose range includes zero, so the order of these commands matters.
    both = [span, f"set logscale {axis}"] if scale.log else [f"unset logscale {axis}", span]
    return [*both, f"set {axis}tics ({tics_text(scale, labels)})"]


def tics_text(scale: Scale, labels: bool = True) -> str:
    """Return the tics with their labels as a gnuplot list."""
    return ", ".join(f"'{short(tic) if labels else ''}' {tic:.6g}" for tic in scale.tics)


def script(page: Page, about: str, drawing: Drawing) -> str:
    """Return the complete script, which draws the plot as PNG and SVG from the data files beside it."""
    name = page.name
    files = " and ".join(data_file(name, middle) for middle in drawing.files) or "no data"
    lines = [
        f"# {name}: {shown(about)}.",
        f"# To draw {name}.png and {name}.svg from {files}: gnuplot {name}.gp",
        f"# To draw only one of them: gnuplot -e \"kind='png'\" {name}.gp",
        "",
        f"if (!exists('kind')) kind = 'png'; load '{name}.gp'; kind = 'svg'; load '{name}.gp'; exit",
        "reset",
        "set encoding utf8",
        "",
        "# Colours.",
        *(f"{name} = '{colour}'" for name, colour in page.theme.colours.items()),
        "",
        *_terminals(page),
        "",
        "# Data: the first line is the header; NaN is a missing value and interrupts the curve.",
        'set datafile separator "\\t"',
        "set datafile columnheaders",
        "",
        "set border 3 lc rgb faint",
        "set tics nomirror out scale 0.5 textcolor rgb ink",
        "set grid lc rgb grid lt 1 lw 0.7",
        "unset key",
        "set multiplot",
        "",
        *drawing.commands,
        "unset multiplot",
        "unset output",
    ]
    return "\n".join(lines) + "\n"


def _terminals(page: Page) -> list[str]:
    size = f"size {page.width},{page.height} noenhanced background rgb background"
    return [
        "# Formats. Font sizes in SVG are in pixels, so they are scaled by 4/3.",
        f"if (kind eq 'png') set terminal pngcairo {size} font 'DejaVu Sans,{TEXT_PT}'",
        f"if (kind eq 'svg') set terminal svg {size} font 'DejaVu Sans,{TEXT_PT}' {_FOR_SVG} name '{page.name}'",
        f"title_font = (kind eq 'png') ? 'DejaVu Sans:Bold,{TITLE_PT}' : 'DejaVu Sans,{TITLE_PT}'",
        "dot = (kind eq 'png') ? 1.0 : 1.1",
        "# Tooltips (SVG only).",
        "hover = (kind eq 'svg')",
        "clock(n) = strftime('%H:%M:%S', x(1))",
        f"set output '{page.name}.'.kind",
    ]


def data_file(name: str, middle: str) -> str:
    """Return the name of a plot's data file; `middle` is a key of `Drawing.files`."""
    return f"{name}.{middle}.tsv" if middle else f"{name}.tsv"


def data_file_text(columns: Mapping[str, Values]) -> str:
    """Return a data file: tab-separated with one header line; missing values are NaN, at which a line breaks."""
    digits = [_EXACT_DIGITS if name in _EXACT_COLUMNS else _DIGITS for name in columns]
    lines = ([_cell(*pair) for pair in zip(row, digits, strict=True)] for row in zip(*columns.values(), strict=True))
    return "".join("\t".join(cells) + "\n" for cells in (list(columns), *lines))


def _cell(value: float | None, digits: int) -> str:
    if value is None:
        return _MISSING
    # Times since the epoch have ten digits before the decimal point, so large numbers are written with more digits.
    return f"{value:.{_EXACT_DIGITS if abs(value) >= _LARGE else digits}g}"
