"""The parts that all gnuplot scripts share."""

from exporters.charts.plot_page import TEXT_PT, TITLE_PT, Drawing, Page
from exporters.charts.text_escaping import cleaned


def script(page: Page, about: str, drawing: Drawing) -> str:
    """Return the complete script, which draws the plot as PNG and SVG from the data files beside it."""
    name = page.name
    files = " and ".join(data_file(name, middle) for middle in drawing.files) or "no data"
    lines = [
        f"# {name}: {cleaned(about)}.",
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
        "set datafile separator '\\t'".replace("'", '"'),
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


_FOR_SVG = "fontscale 1.333 mouse standalone"


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
