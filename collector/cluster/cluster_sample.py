"""What all nodes did together in an interval."""

from dataclasses import dataclass

from collector.model.sample import Sample


@dataclass(frozen=True)
class ClusterSample:
    """What the nodes did together in one interval.

    answered  how many of them had a Cassandra that answered.
    """

    sample: Sample
    answered: int
