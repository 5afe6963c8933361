"""Count the product files in which a function runs: for `record -- sleep 5` with its report, and for a scrape.

Arguments are the commits to compare, by default the one that is checked out. All record the same node of Cassandra 5.0.
The second number is that of an agent from its start until /metrics has been read once after the first tick.
"""

import os
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.setup.demo.demo_cluster import LocalCluster, Plan, cache_folder
from tests.ports import free_port
from tests.real.nodes import no_progress

PLAN = Plan("5.0.8", 1, "127.0.196.1", "400M")
PRODUCT = ("collector", "exporters", "cli", "dashboards")
WITHIN_S, POLL_S = 120.0, 0.2
# Writes the path of each product file to a file when the first function of it runs, in every process and thread.
# Class bodies, comprehensions and modules run while a module is imported, so they do not count.
TRACER = """
import inspect, sys, threading
folders, output, seen = {folders!r}, {output!r}, set()

def note(frame, event, _):
    code = frame.f_code
    if event != "call" or code.co_filename in seen or not code.co_filename.startswith(folders):
        return
    if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<"):
        seen.add(code.co_filename)
        with open(output, "a") as file:
            file.write(code.co_filename + "\\n")

sys.setprofile(note)
threading.setprofile(note)
"""


def interpreter(code: Path, folder: Path, output: Path) -> Path:
    """Create an environment in `folder` that runs the casstat in `code`, and notes the files entered in `output`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    folders = tuple(f"{code / package}{os.sep}" for package in PRODUCT)
    (packages / "entered_tracer.py").write_text(TRACER.format(folders=folders, output=str(output)))
    lines = [str(code), sysconfig.get_path("purelib"), "import entered_tracer"]
    (packages / "entered.pth").write_text("\n".join(lines))
    return folder / "bin/python"


def record(python: Path, folder: Path) -> None:
    """Record a run with a report; raises CalledProcessError if that fails."""
    command: list[str | Path] = [python, "-m", "cli", "record", "-o", "run", "--", "sleep", "5"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    assert (folder / "run/report.html").exists()


def scrape(python: Path, folder: Path) -> None:
    """Run an agent until /metrics contains the values of a tick."""
    address = f"127.0.0.1:{free_port()}"
    options: list[str | Path] = ["--journal-dir", folder / "journal", "--listen", address]
    with subprocess.Popen([python, "-m", "cli", "agent", *options], cwd=folder) as agent:
        try:
            end_s = time.monotonic() + WITHIN_S
            while b"cassandra_client_requests_total{" not in metrics(address):
                assert agent.poll() is None
                assert time.monotonic() < end_s
                time.sleep(POLL_S)
        finally:
            agent.send_signal(signal.SIGTERM)


def metrics(address: str) -> bytes:
    """Return /metrics; empty while the agent does not answer."""
    with suppress(OSError), urllib.request.urlopen(f"http://{address}/metrics", timeout=WITHIN_S) as response:
        return bytes(response.read())
    return b""


def entered(code: Path, folder: Path) -> dict[str, set[str]]:
    """Return the product files that each activity enters."""
    files = {}
    for name, activity in (("record", record), ("scrape", scrape)):
        work = folder / name
        work.mkdir()
        output = work / "entered"
        activity(interpreter(code, work / "venv", output), work)
        files[name] = {str(Path(line).relative_to(code)) for line in output.read_text().splitlines()}
    return files


def main(commits: list[str]) -> None:
    root = Path(__file__).resolve().parents[1]
    with TemporaryDirectory() as temporary, ExitStack() as stack:
        (node,) = LocalCluster(Path(temporary, "cluster"), cache_folder(os.environ)).up(PLAN, os.environ, no_progress)
        stack.callback(node.kill)
        print("| version | product files | entered by record | entered by a tick with a scrape |\n|---|---|---|---|")
        for number, commit in enumerate(commits or ["HEAD"]):
            folder = Path(temporary, str(number))
            code = folder / "code"
            subprocess.run(["git", "clone", "--quiet", "--shared", root, code], check=True)  # noqa: S607
            subprocess.run(["git", "checkout", "--quiet", "--detach", commit], cwd=code, check=True)  # noqa: S607
            files = entered(code, folder)
            total = sum(1 for package in PRODUCT for _ in (code / package).rglob("*.py"))
            print(f"| {commit} | {total} | {len(files['record'])} | {len(files['scrape'])} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
