"""The sample of a whole cluster for one interval."""

from dataclasses import dataclass

from collector.model.sample import Sample


@dataclass(frozen=True)
class ClusterSample:
    """The cluster's sample for one interval.

    answered  the number of nodes on which Cassandra answered.
    """

    sample: Sample
    answered: int
