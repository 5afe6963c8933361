"""Runs a cluster and generates the pages that are given as arguments, or all of them."""

import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.setup.demo.demo_node import Node
from docs.howto import batches, client_counts, concurrency_and_size, metric_store, two_clients
from docs.howto.howto_cluster import howto_cluster

# The last one stops a node.
PAGES: dict[str, Callable[[Path, Sequence[Node]], None]] = {
    "two_clients": two_clients.generate,
    "concurrency_and_size": concurrency_and_size.generate,
    "batches": batches.generate,
    "metric_store": metric_store.generate,
    "client_counts": client_counts.generate,
}


def main() -> int:
    """Generate the pages; return the exit status."""
    # A shell may start a background job with SIGINT ignored, which `casstat sweep --duration` needs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = [name for name in PAGES if name in sys.argv[1:]] if sys.argv[1:] else [*PAGES]
    with TemporaryDirectory() as name:
        folder = Path(name)
        with howto_cluster(folder) as nodes:
            for name in names:
                (folder / name).mkdir()
                PAGES[name](folder / name, nodes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
