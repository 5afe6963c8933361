"""Three agents of a real cluster upload to a real S3 server (versitygw) through an outage and a SIGKILL of an agent.

The merge of what the store contains must equal the merge of the journals byte for byte, for all ticks and for a minute
of them. Needs Go to build the server.
"""

import filecmp
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from acceptance.outage import CASSTAT, NODES, agents_through_an_outage, cluster
from cli.setup.demo.demo_cluster import cache_folder
from tests.ports import free_port
from tests.waiting import eventually

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@latest"
BUCKET = "loadtests"


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


def casstat(environ: Mapping[str, str], *words: str) -> None:
    subprocess.run([*CASSTAT, *words], check=True, env=dict(environ))


def differences(first: Path, second: Path) -> Sequence[str]:
    """Return the names of the files that are not the same in both directories."""
    names = {
        str(path.relative_to(folder)) for folder in (first, second) for path in folder.rglob("*") if path.is_file()
    }
    _, mismatches, errors = filecmp.cmpfiles(first, second, sorted(names), shallow=False)
    return mismatches + errors


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
        journals = {node: folder / "journals" / node for node in NODES}
        url = f"s3://{BUCKET}/journals"
        down_s = agents_through_an_outage(journals, url, partial(s3_server, store, port, environ), environ)
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
