"""Malformed records that no recorder would write, but whose checksums match."""

import json
import zlib
from typing import Any

from tests.collector.merge.recorded_nodes import READ_DURATION, READS

Line = dict[str, Any]
NAN, HUGE = float("nan"), 10**400
FIELDS: dict[str, tuple[Any, ...]] = {
    "q": ("x", None, HUGE, -1, 0, 2, 4, 3.0, True),
    "t": ("x", None, NAN, HUGE, 1e300, -1.0, 4e9),
    "l": ("x", HUGE, NAN, -1),
    "m": ("x", 0.5, HUGE),
    "z": ("x", HUGE),
    "n": (5, [5], "x" * 99_999, "\ud800"),
    "b": ("ab", [1], ["cassandra", "cassandra"], ["other"], []),
    "a": ([], ["x"], [1.5], [HUGE], [1, 2], [-100_000]),
    "c": (["x"], [], None),
    "o": (7, {"cassandra": 7}, {"cassandra": "another"}),
    "x": ([99], [-1], ["x"], [0, 1, 1], [HUGE]),
    "d": ([10], [1.5, 1], [NAN, 1], ["1", 1], [None, 1], [HUGE, 1], [1 << 63, 1], [(1 << 63) - 5, 1]),
    "i": ([0, 0], [0, 99], [0, 1.0], [-1, 1], [0, 2]),
    "h": ([], ["A"], ["é"], ["b" * 999], ["99999999999999999999,"], ["-5,"], [7]),
    "g": ([], [-1], [127.5], [999], [HUGE]),
    "k": ([0], [9], ["x"]),
    "w": ([[2]], [[2, 4096]], [[2, 10**9]], [[-1, 128]], [[0, 128]], [[9, 128]]),
    "s": ([[]], [[1, 2]], [["cassandra"]], [["cassandra", ["x"]]]),
    "e": ([[0]], [[9, "a", "b", None]], [[0, 1, 2, "x"]], [[0, "a", "b", HUGE]]),
    "p": (7, [[9, "x"]], [[0, 7]]),
}
NONSENSE: dict[str, Line] = {
    **{f"{key}: {str(value)[:12]}": {key: value} for key, values in FIELDS.items() for value in values},
    "a value that is none": {"j": [0], "f": [None]},
    "a value that is a list": {"j": [0], "f": [[1]]},
    "a value that is a string": {"j": [0], "f": ["x"]},
    "an infinite value": {"j": [0], "f": [float("inf")]},
    "a value beyond 64 bits": {"j": [0], "f": [1 << 70]},
    "the largest value": {"j": [0], "f": [1.7e308]},
    "the same series again": {
        "s": [["cassandra", *READS]],
        "x": [3],
        "i": [0, 1, 2],
        "d": [10, 5000, 7],
    },
    "a series with too many labels": {
        "s": [["cassandra", *READS, "x"]],
        "x": [3],
        "i": [0, 1, 2],
        "d": [10, 5000, 7],
    },
}
NAMED = ["node_disk_reads_completed_total", "counter", "1", ["device"], 1.0, 0.0, "", ""]
ROW: list[Any] = [READS[0], "counter", "1", ["operation"], 1.0, 0.0, "", ""]
WRONG: list[Any] = [None, [], NAN, "gauge", 1e308]
WRONG_ROWS = [[[*ROW[:index], wrong, *ROW[index + 1 :]]] for index in range(8) for wrong in WRONG]
HEADS: dict[str, list[Any]] = {
    "interval_s": [0, -1, "x", None, NAN, 1e300, 1e-300],
    "session": [1, None, []],
    "zone": [1e300, "x", None, HUGE],
    "boot": [1, None],
    "error_s": ["x", NAN],
    "sources": [1, None, [1], [[]]],
    "lost": ["x", HUGE, -1],
    "format": ["x", None, 1, 3],
    "file": [1, None],
    "first": ["x", HUGE, -1, 5],
    "metrics": [
        1,
        [1],
        [[]],
        *WRONG_ROWS,
        [ROW, [READ_DURATION[0], "counter", "1", ["operation"], 1.0, 0.0, "", ""]],
        [ROW, [READ_DURATION[0], "histogram", "moons", ["operation"], 1.0, 0.0, "", ""]],
        [NAMED],
    ],
}


def changed(line: bytes, change: Line) -> bytes:
    """Return the line with these fields changed and with a matching checksum."""
    content = {key: value for key, value in json.loads(line).items() if key != "crc"}
    body = json.dumps({**content, **change}).encode()[:-1]
    return b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body))
