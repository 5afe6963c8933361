"""The sample of a whole cluster for one interval."""

from dataclasses import dataclass

from collector.model.sample import Sample


@dataclass(frozen=True)
class ClusterSample:
    """The cluster's sample for one interval.

    answered  the number of nodes on which Cassandra answered.
    down      the number of nodes on which it did not, and whose operations no later reading includes.
    down_s    the longest time for which one of the latter was down.
    """

    sample: Sample
    answered: int
    down: int = 0
    down_s: float = 0.0
