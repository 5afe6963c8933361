"""Record three real nodes, one of which freezes for six seconds and one of which is killed, and check what is stated.

The nodes run with an agent each, under a light load of 70 s. After 20 s, the second node is stopped with SIGSTOP for
six seconds; 30 s before the end, the third is killed. The terminal, `summary.json`, the report's verdict and events,
`--fail-if` and `casstat runs show` must state both, and nothing about the first node. Takes about four minutes.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from acceptance.client_hosts import PLAN, cluster
from cli.setup.demo.demo_node import Node
from collector.runs.run_file import is_run
from tests.real.programs import program

DURATION_S, FREEZE_AFTER_S, FROZEN_S, KILL_AFTER_S = 70, 20, 6, 40
RATE = 300
# The nodes are busy with a load before the run, which compiles their code.
WARM_UP_S = 20


def load(seconds: int) -> list[str]:
    """Return the command that generates the load."""
    return [
        *(sys.executable, "-m", "cli.setup.demo.load_generator", "--rate", str(RATE), "--seconds", str(seconds)),
        *PLAN.addresses(),
    ]


def recorded(nodes: Sequence[Node], folder: Path) -> tuple[int, str]:
    """Record the run during which nodes fail; return the exit status, and what was printed on stderr."""
    options = ("-o", str(folder), "--fail-if", "node_intervals_missing > 0", "--fail-if", "nodes_missing > 0")
    words = program("record", *PLAN.addresses(), *options, "--", *load(DURATION_S))
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while not is_run(folder) and process.poll() is None:
            time.sleep(0.1)
        time.sleep(FREEZE_AFTER_S)
        nodes[1].suspend()
        time.sleep(FROZEN_S)
        nodes[1].resume()
        time.sleep(KILL_AFTER_S - FREEZE_AFTER_S - FROZEN_S)
        nodes[2].kill()
        _, errors = process.communicate(timeout=300)
    return process.returncode, errors


def section(report: str, title: str) -> str:
    """Return a section of a report in Markdown."""
    return report.split(f"## {title}\n")[1].split("\n## ")[0]


def defects(nodes: Sequence[Node], folder: Path, code: int, errors: str) -> list[str]:
    """Return what is not stated."""
    steady, frozen, killed = (node.spec.address for node in nodes)
    values = json.loads((folder / "summary.json").read_text())[-1]["values"]
    report = (folder / "report.md").read_text()
    verdict, events = section(report, "Verdict"), section(report, "Events")
    shown = subprocess.run(program("runs", "show", str(folder)), capture_output=True, text=True, check=True).stdout
    for title, text in (("terminal", errors), ("verdict", verdict), ("events", events), ("runs show", shown)):
        print(f"--- {title}\n{text}")
    print(f"--- summary.json\n{ {name: value for name, value in values.items() if name.startswith('node')} }")
    froze = rf"{frozen}: \d+ of \d+ intervals, (.*, )?did not answer from [\d:]+ to [\d:]+"
    died = rf"{killed}: [1-4]\d of (69|7\d) intervals, (.*, )?did not answer from [\d:]+ until the end"
    checks = {
        "the exit status is 1": code == 1,
        "--fail-if states the intervals": "--fail-if 'node_intervals_missing > 0': node_intervals_missing is" in errors,
        "--fail-if does not state missing nodes": "nodes_missing is" not in errors.replace("node_intervals", ""),
        "summary.json has the nodes": (values["nodes"], values["nodes_missing"]) == (3, 0),
        "summary.json has incomplete nodes": values["nodes_incomplete"] >= 2,
        "summary.json has the intervals": values["node_intervals_missing"] >= FROZEN_S - 1 + 28,
        "the verdict does not state that all is well": "No samples were lost" not in verdict,
        "the verdict states who served": "The cluster (" in verdict and "not throughout) served" in verdict,
        "an event states the silence": bool(re.search(rf"no\\_answer \| {frozen} \| did not answer from", events)),
        "an event states the death": bool(re.search(rf"no\\_answer \| {killed} \|.*until the end", events)),
    }
    for name, text in (("terminal", errors), ("verdict", verdict), ("runs show", shown)):
        checks[f"{name}: frozen"] = bool(re.search(froze, text))
        checks[f"{name}: killed"] = bool(re.search(died, text))
    print(f"--- the steady node: {'incomplete' if f'{steady}: ' in errors else 'complete'}")
    return [name for name, holds in checks.items() if not holds]


def main() -> None:
    """Record the run, and exit with the status 1 if something is not stated."""
    with TemporaryDirectory() as name, cluster(Path(name)) as nodes:
        subprocess.run(load(WARM_UP_S), check=True, stdout=subprocess.DEVNULL)
        folder = Path(name) / "run"
        code, errors = recorded(nodes, folder)
        problems = defects(nodes, folder, code, errors)
    print("\n".join(f"not stated: {problem}" for problem in problems) or "all is stated")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
