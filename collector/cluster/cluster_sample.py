"""The cluster's sample of an interval."""

from dataclasses import dataclass

from collector.model.sample import Sample


@dataclass(frozen=True)
class ClusterSample:
    """The cluster's sample of one interval.

    answered  the number of nodes with a responding Cassandra.
    """

    sample: Sample
    answered: int
