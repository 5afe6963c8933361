"""Three agents of a real cluster upload to a real S3 server (versitygw) through an outage and a SIGKILL of an agent.

The merge of what the store contains must equal the merge of the journals byte for byte, for all ticks and for a minute
of them. Needs Go to build the server.
"""

import filecmp
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.demo.demo_cluster import cache_folder
from tests.ports import free_port
from tests.waiting import eventually

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@latest"
NODES = ("127.0.186.1", "127.0.186.2", "127.0.186.3")
BUCKET = "loadtests"
# The times with the server, without it, and after its return.
BEFORE_S, OUTAGE_S, AFTER_S = 40.0, 120.0, 60.0
PATIENCE_S = 90.0
CASSTAT = (sys.executable, "-m", "cli")


def server_program() -> Path:
    """Return the path of the S3 server; build it if it does not exist."""
    folder = cache_folder(os.environ) / "versitygw"
    if not (folder / "versitygw").exists():
        folder.mkdir(parents=True, exist_ok=True)
        environ = {**os.environ, "GOBIN": str(folder)}
        subprocess.run(["/usr/bin/env", "go", "install", VERSITYGW], check=True, env=environ)
    return folder / "versitygw"


@contextmanager
def s3_server(folder: Path, port: int, environ: Mapping[str, str]) -> Iterator[None]:
    """Run the S3 server on a directory."""
    keys = {
        "ROOT_ACCESS_KEY": environ["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_KEY": environ["AWS_SECRET_ACCESS_KEY"],
    }
    command = [str(server_program()), "--port", f"127.0.0.1:{port}", "posix", str(folder)]
    with subprocess.Popen(command, env={**os.environ, **keys}, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """Run a demo cluster of three nodes under load."""
    command = [*CASSTAT, "demo", "up", "--nodes", str(len(NODES)), "--load", "200", "--heap", "400M"]
    subprocess.run([*command, "--address", NODES[0], "--dir", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run([*CASSTAT, "demo", "down", "--dir", str(folder)], check=True)


def started(node: str, journal: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the agent of a node."""
    words = ("--jolokia", f"http://{node}:8778/jolokia", "--listen", f"{node}:17199", "--to", f"s3://{BUCKET}/journals")
    return subprocess.Popen([*CASSTAT, "agent", "--journal-dir", str(journal), *words], env=dict(environ))


def casstat(environ: Mapping[str, str], *words: str) -> None:
    subprocess.run([*CASSTAT, *words], check=True, env=dict(environ))


def differences(first: Path, second: Path) -> Sequence[str]:
    """Return the names of the files that are not the same in both directories."""
    names = {
        str(path.relative_to(folder)) for folder in (first, second) for path in folder.rglob("*") if path.is_file()
    }
    _, mismatches, errors = filecmp.cmpfiles(first, second, sorted(names), shallow=False)
    return mismatches + errors


def agents_through_an_outage(folder: Path, store: Path, port: int, environ: Mapping[str, str]) -> float:
    """Run the agents; return a time at which the server was down."""
    journals = {node: folder / "journals" / node for node in NODES}
    with ExitStack() as stack:
        server = stack.enter_context(ExitStack())
        server.enter_context(s3_server(store, port, environ))
        agents = {node: started(node, journal, environ) for node, journal in journals.items()}
        time.sleep(BEFORE_S)
        server.close()
        time.sleep(OUTAGE_S / 2)
        down_s = time.time()
        killed = agents[NODES[0]]
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        agents[NODES[0]] = started(NODES[0], journals[NODES[0]], environ)
        time.sleep(OUTAGE_S / 2)
        server.enter_context(s3_server(store, port, environ))
        time.sleep(AFTER_S)
        for agent in agents.values():
            agent.terminate()
        codes = [agent.wait(PATIENCE_S) for agent in agents.values()]
    if any(codes):
        raise SystemExit(f"agents ended with {codes}")
    return down_s


def main() -> int:
    """Run everything and print the comparison; return 1 if a merge differs."""
    server_program()
    with TemporaryDirectory() as name, cluster(Path(name, "demo")):
        folder, store, port = Path(name), Path(name, "store"), free_port()
        (store / BUCKET).mkdir(parents=True)
        environ = {
            **os.environ,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "casstat",
            "AWS_SECRET_ACCESS_KEY": "acceptance",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        down_s = agents_through_an_outage(folder, store, port, environ)
        with s3_server(store, port, environ):
            eventually(lambda: subprocess.run([*CASSTAT, "runs", f"s3://{BUCKET}"], env=environ).returncode == 0)
            failed = False
            minute = ("--from", f"{down_s - 30:.0f}", "--until", f"{down_s + 30:.0f}")
            for words in ((), minute):
                for output, source in (("local", str(folder / "journals")), ("stored", f"s3://{BUCKET}/journals")):
                    shutil.rmtree(folder / output, ignore_errors=True)
                    casstat(environ, "merge", source, "-i", "1", "-o", str(folder / output), *words)
                differing = differences(folder / "local", folder / "stored")
                rows = (folder / "local" / "rows.tsv").read_bytes().count(b"\n") - 1
                time_range = "a minute of the outage" if words else "all ticks"
                print(f"{time_range}: {rows} rows, files that differ: {', '.join(differing) or 'none'}")
                failed |= bool(differing)
            objects = sum(1 for path in store.rglob("*.zst") if path.is_file())
            print(f"{objects} objects, {sum(path.stat().st_size for path in store.rglob('*.zst'))} bytes")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
