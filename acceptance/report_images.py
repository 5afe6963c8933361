"""Record a run of a real cluster under load, and take screenshots of its report in Chromium, to look at.

ARGS is the directory for the images: light and dark, on a wide and on a narrow screen, and printed. A cluster of three
nodes is recorded while latte reads at two rates for 30 seconds each. Takes about four minutes.
"""

import subprocess
import sys
from itertools import product
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import sync_playwright

from acceptance.client_hosts import PLAN, cluster, latte, loaded_workload
from tests.real.programs import program

RATES, DURATION_S = (500, 2000), 30
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS_PX = {"wide": 1400, "narrow": 400}


def record(folder: Path) -> Path:
    """Record a run with a phase for each rate; return its report."""
    workload, script = loaded_workload(folder), folder / "load.sh"
    lines = []
    for rate in RATES:
        lines += [
            " ".join(program("mark", f"'{rate} reads/s'")),
            f"{latte()} run {workload} {PLAN.address} -t 1 --quiet --rate {rate} -p 16 --duration {DURATION_S}s"
            f" --output {folder}/{rate}.json",
        ]
    script.write_text("set -e\n" + "\n".join(lines) + "\n")
    clients = [word for rate in RATES for word in ("--client", f"{folder}/{rate}.json")]
    words = ["--warm-up", "5s", *clients, "-o", str(folder / "run"), "--", "sh", str(script)]
    subprocess.run(program("record", *PLAN.addresses(), *words), cwd=folder, check=True)
    return folder / "run" / "report.html"


def take(report: Path, images: Path) -> None:
    """Write the images, and print their names and sizes."""
    images.mkdir(parents=True, exist_ok=True)
    chromium = which("chromium-headless-shell")
    assert chromium is not None, "chromium-headless-shell is not installed (hint: run 'sh tools/prepare test')"
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium) as browser:
        for scheme, (name, width_px) in product(SCHEMES, WIDTHS_PX.items()):
            page = browser.new_page(color_scheme=scheme, viewport={"width": width_px, "height": 900})
            page.goto(report.as_uri())
            page.screenshot(path=images / f"{scheme}-{name}.png", full_page=True)
        page.pdf(path=images / "printed.pdf", format="A4")
    for image in sorted(images.iterdir()):
        print(f"{image}: {image.stat().st_size / 1024:.0f} KiB")


def main() -> int:
    """Record a run and take the images; return the exit status."""
    images = Path(sys.argv[1] if len(sys.argv) > 1 else "report-images")
    with TemporaryDirectory() as text, cluster(Path(text)):
        take(record(Path(text)), images)
    return 0


if __name__ == "__main__":
    sys.exit(main())
