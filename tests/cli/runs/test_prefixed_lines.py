"""The output of several hosts is divided into lines, each prefixed with the name of its host."""

from hypothesis import given
from hypothesis import strategies as st

from cli.record.clients.remote_client_hosts import MAX_LINE_BYTES, PrefixedLines

PARTS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 2), st.binary(max_size=20)), max_size=20)


@given(PARTS)
def test_each_stream_of_each_host_keeps_its_lines(parts: list[tuple[int, int, bytes]]) -> None:
    lines = PrefixedLines(["a", "b"])
    added = [(host, stream, lines.add(host, stream, data)) for host, stream, data in parts]
    passed_on = [(stream, lines.prefixed(host, text)) for host, stream, text in (*added, *lines.rest())]
    for host, label in enumerate((b"a: ", b"b: ")):
        for number in (1, 2):
            written = b"".join(data for of, stream, data in parts if (of, stream) == (host, number))
            shown = [
                line.removeprefix(label)
                for stream, text in passed_on
                for line in text.split(b"\n")
                if stream == number and line.startswith(label)
            ]
            assert shown == (written.removesuffix(b"\n").split(b"\n") if written else [])


def test_a_long_line_is_divided() -> None:
    lines = PrefixedLines(["a"])
    text = b"x" * (MAX_LINE_BYTES + 1)
    assert lines.add(0, 1, text) == text
    assert lines.prefixed(0, text) == lines.prefixed(0, text + b"\n") == b"a: " + text + b"\n"
    assert list(lines.rest()) == []
