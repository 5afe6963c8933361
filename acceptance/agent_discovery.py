"""Find the agents of three real nodes with each method of `casstat top`: addresses, a seed, a file, and DNS.

The name for DNS is in a file of hosts that only `casstat top` sees, in its own mount namespace, which requires root.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.agents import RunningAgent

CASSTAT = (sys.executable, "-m", "cli")
NODES = tuple(f"127.0.188.{number}" for number in (1, 2, 3))
NAME, PORT, TICKS, LIMIT_S = "agents.test", 17199, 6, 120


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """Run three nodes under load, and an agent of each, on the same address and port."""
    demo = (*CASSTAT, "demo")
    options = ("--nodes", str(len(NODES)), "--load", "100", "--heap", "400M", "--address", NODES[0])
    subprocess.run([*demo, "up", *options, "--dir", str(folder / "demo")], check=True)
    try:
        with ExitStack() as stack:
            for node in NODES:
                words = ("--jolokia", f"http://{node}:8778/jolokia")
                agent = RunningAgent(folder / node, *words, listen=f"{node}:{PORT}")
                stack.enter_context(agent).wait_until_serving()
            yield
    finally:
        subprocess.run([*demo, "down", "--dir", str(folder / "demo")], check=True)


def methods(folder: Path) -> Mapping[str, Sequence[str]]:
    """Return the command of each method."""
    groups, hosts = folder / "agents.json", folder / "hosts"
    groups.write_text(json.dumps([{"targets": [f"{node}:{PORT}" for node in NODES]}]))
    hosts.write_text("".join(f"{node} {NAME}\n" for node in NODES))
    top = (*CASSTAT, "top", "--format", "json", "--count", str(TICKS))
    as_hosts = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts))
    return {
        "addresses": (*top, *NODES),
        "seed": (*top, "--seed", NODES[0]),
        "file_sd": (*top, "--file-sd", str(groups)),
        "DNS": (*as_hosts, *top, "--dns", f"{NAME}:{PORT}"),
    }


def nodes_in(output: str) -> set[str]:
    """Return the nodes with operations in the last tick."""
    last = json.loads(output.splitlines()[-1])
    return {row["node"] for row in last["nodes"] if row.get("reads_per_s")}


def main() -> int:
    """Run each method and print the nodes that it shows; return 1 if one is missing."""
    failed = False
    with TemporaryDirectory() as name, cluster(Path(name)):
        for method, command in methods(Path(name)).items():
            result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
            nodes = nodes_in(result.stdout)
            print(f"{method}: {', '.join(sorted(nodes)) or 'none'}", flush=True)
            failed |= nodes != set(NODES)
    return failed


if __name__ == "__main__":
    sys.exit(main())
