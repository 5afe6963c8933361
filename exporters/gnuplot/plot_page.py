"""The sheet that a picture is on: its size, its title above, and what is to be known of the figures below."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from exporters.gnuplot.data_files import Columns
from exporters.gnuplot.missing_nodes import MissingNodes
from exporters.gnuplot.plot_colours import Theme
from exporters.gnuplot.plot_data import Run
from exporters.gnuplot.text_escaping import quoted, shortened, wrapped

TITLE_PT, SUBTITLE_PT, TEXT_PT, SMALL_PT = 14, 9, 9, 8
TITLE_PX, SUBTITLE_PX, FOOTER_LINE_PX = 32, 20, 14
MARGIN_PX = 12
LEFT_PX = 78
RIGHT_PX = 168
TIME_AXIS_PX = 42
_FOOTER_LINES = 4
# To the left of it an SVG has a button of its own.
_FOOTER_LEFT_PX = 34


@dataclass(frozen=True)
class Drawing:
    """What a picture is made of: the commands of its script, and its data files by what their names have in the middle.

    "" is NAME.tsv, "nodes" is NAME.nodes.tsv.
    """

    commands: Sequence[str]
    files: dict[str, Columns] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """Where something is, in pixels from the left and from the top."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Its width."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Its height."""
        return self.bottom - self.top


@dataclass(frozen=True)
class Page:
    """The sheet of one picture of a run, in pixels."""

    run: Run
    name: str
    width: int
    height: int
    theme: Theme
    missing: MissingNodes

    @property
    def data(self) -> str:
        """The data file, as the script names it."""
        return f"'{self.name}.tsv'"

    @property
    def footer(self) -> list[str]:
        """The lines below."""
        whole = " · ".join(part for part in self.run.footer if part)
        return wrapped(whole, SMALL_PT, self.width - MARGIN_PX - _FOOTER_LEFT_PX, _FOOTER_LINES)

    @property
    def inside(self) -> Box:
        """What is left between title and footer."""
        below = MARGIN_PX + FOOTER_LINE_PX * len(self.footer)
        return Box(0, TITLE_PX + SUBTITLE_PX, self.width, self.height - below)

    def x(self, px: float) -> str:
        """Return pixels from the left as a coordinate of the screen."""
        return f"{px / self.width:.4f}"

    def y(self, px: float) -> str:
        """Return pixels from the top as a coordinate of the screen."""
        return f"{1 - px / self.height:.4f}"

    def margins(self, box: Box) -> list[str]:
        """Return the commands that put the next panel there."""
        return [
            f"set lmargin at screen {self.x(box.left)}; set rmargin at screen {self.x(box.right)}",
            f"set tmargin at screen {self.y(box.top)}; set bmargin at screen {self.y(box.bottom)}",
        ]

    def label(self, text: str, x: float, y: float, look: str, tag: int | None = None) -> str:
        """Return the command that writes something there, in place of what has the same tag."""
        return f"set label {f'{tag} ' if tag else ''}{quoted(text)} at screen {self.x(x)}, screen {self.y(y)} {look}"

    def labels(self, subtitle: str) -> list[str]:
        """Return the commands for what is above and below; they belong to the first panel."""
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


def span_text(run: Run) -> str:
    """Return when the run was, how long, and of how many nodes it is."""
    nodes = len(run.nodes)
    of = f"{nodes} node{'s' if nodes != 1 else ''}, interval {run.interval_s:g} s"
    if not run.times:
        return of
    begin_s, end_s = run.times[0] - run.interval_s, run.times[-1]
    try:
        zone = timezone(timedelta(seconds=run.zone_s))
        begin, end = (datetime.fromtimestamp(time_s, zone) for time_s in (begin_s, end_s))
    except (OverflowError, ValueError, OSError):
        return of
    until = f"{end:%H:%M:%S}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{begin:%Y-%m-%d %H:%M:%S} to {until} (UTC{begin.isoformat()[-6:]}), {duration_text(end_s - begin_s)}, {of}"


def duration_text(seconds: float) -> str:
    """Return a length of time as people say it: 45 s, 10 min, 1 h 5 min."""
    if seconds < 120:
        return f"{seconds:.4g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest if not hours else 0, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
