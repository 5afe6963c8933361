"""A plot's page: its size, its title and its footer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from collector.printable import count_text
from exporters.charts.data_files import Columns
from exporters.charts.missing_nodes import MissingNodes
from exporters.charts.plot_colours import Theme
from exporters.charts.plot_data import Run
from exporters.charts.text_escaping import quoted, shortened, wrapped

TITLE_PT, SUBTITLE_PT, TEXT_PT, SMALL_PT = 14, 9, 9, 8
TITLE_PX, SUBTITLE_PX, FOOTER_LINE_PX = 32, 20, 14
MARGIN_PX = 12
LEFT_PX = 78
RIGHT_PX = 168
TIME_AXIS_PX = 42
_FOOTER_LINES = 4
# gnuplot's SVG shows a button to the left of the footer.
_FOOTER_LEFT_PX = 34


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

    run: Run
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


def span_text(run: Run) -> str:
    """Return the run's time range, duration, number of nodes and interval."""
    nodes = len(run.nodes)
    of = f"{count_text(nodes, 'node')}, interval {run.interval_s:g} s"
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
    """Return a readable duration, such as 45 s, 10 min or 1 h 5 min."""
    if seconds < 120:
        return f"{seconds:.4g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest if not hours else 0, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)
