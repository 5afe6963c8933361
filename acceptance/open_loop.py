"""A load generator with an open loop: it sends queries when they are due, whether or not others are answered.

Arguments: the node's address, the rate, the duration in seconds, and the file for its result, a generic CSV with
response times. `prepare` creates the table that it reads.
"""

import sys
import threading
import time
from pathlib import Path

from cassandra.cluster import Cluster, Session

ROWS = 2000
TABLE = "casstat.wide"
QUERY = f"SELECT sum(v) FROM {TABLE} WHERE p = 0"  # noqa: S608 - a constant
MAX_S = 60.0


def prepare(address: str) -> None:
    """Create a table with one partition whose sum takes milliseconds."""
    cluster = Cluster([address])
    session = cluster.connect()
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS casstat WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    session.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} (p int, c int, v int, PRIMARY KEY (p, c))")
    insert = session.prepare(f"INSERT INTO {TABLE} (p, c, v) VALUES (0, ?, 1)")  # noqa: S608
    for row in range(ROWS):
        session.execute(insert, (row,))
    cluster.shutdown()


class _Responses:
    """The ends and response times of operations."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, str]] = []
        self._lock = threading.Lock()

    def add(self, due_s: float, error: str = "") -> None:
        now_s = time.time()
        with self._lock:
            self.rows.append((now_s, now_s - due_s, error))


def run(session: Session, rate: float, length_s: float) -> list[tuple[float, float, str]]:
    """Send the queries, wait for the responses, and return the end, the response time and the error of each."""
    query, responses = session.prepare(QUERY), _Responses()
    begin_s, number = time.time(), int(rate * length_s)
    for index in range(number):
        due_s = begin_s + index / rate
        time.sleep(max(due_s - time.time(), 0.0))
        session.execute_async(query).add_callbacks(
            lambda _, due_s=due_s: responses.add(due_s),
            lambda error, due_s=due_s: responses.add(due_s, type(error).__name__),
        )
    ends_s = time.time() + MAX_S
    while len(responses.rows) < number and time.time() < ends_s:
        time.sleep(0.05)
    return responses.rows


def main(address: str, rate: float, length_s: float, file: Path) -> None:
    cluster = Cluster([address])
    cluster.default_timeout = MAX_S
    session = cluster.connect()
    session.default_timeout = MAX_S
    rows = list(run(session, rate, length_s))
    text = "".join(f"{end_s:.6f},{1000 * response_s:.3f},{error}\n" for end_s, response_s, error in sorted(rows))
    file.write_text("time_s,response_ms,error\n" + text)
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
