"""pyarrow's threads, which may outlive a call and even the interpreter, must not hold memory of Python."""

import pytest

from collector.arrow import csv, csv_table, pa


def test_a_thread_that_still_holds_the_content_of_csv_holds_no_memory_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = []
    read_csv = csv.read_csv

    def holding(source: pa.Buffer, *options: object) -> pa.Table:
        held.append(source)
        return read_csv(source, *options)

    monkeypatch.setattr(csv, "read_csv", holding)
    content = bytearray(b"1,a\n2,b\n")
    names = csv.ReadOptions(column_names=["number", "text"])
    table = csv_table(content, names, csv.ParseOptions(), csv.ConvertOptions())
    assert table.to_pydict() == {"number": [1, 2], "text": ["a", "b"]}
    assert len(held) == 1
    # A bytearray cannot be resized while anything refers to its memory.
    content.clear()
