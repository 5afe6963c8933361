"""What a sweep's throughput counts: operations, or items of operations such as the rows of a batch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ThroughputUnit:
    """The unit of the throughput.

    name    its name in texts.
    header  the header of the throughput in tables for people.
    column  the column of the throughput in files.
    """

    name: str
    header: str
    column: str

    @property
    def axis_label(self) -> str:
        return f"throughput, {self.name}"


OPERATIONS = ThroughputUnit("operations/s", "ops/s", "ops_per_s")
ITEMS = ThroughputUnit("items/s", "items/s", "items_per_s")
