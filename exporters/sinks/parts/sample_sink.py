"""Base class of the sinks whose points come from samples: rates, values and the percentiles of an interval."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from collector.merge.aggregation import NOWHERE, Placement
from collector.model.identity import Identity
from collector.model.metric import Metric
from collector.model.sample import Sample
from exporters.bounded_labels import BoundedLabels
from exporters.sinks.sink import NodeTick, Sink


class SampleSink(Sink[bytes]):
    """A sink that encodes samples without unbounded labels; the first tick of a session has no sample."""

    _recorded: Mapping[str, Metric] = {}
    _bounded = BoundedLabels({})

    @abstractmethod
    def encode_sample(
        self, catalogue: Mapping[str, Metric], identity: Identity, sample: Sample, placement: Placement = NOWHERE
    ) -> list[bytes]:
        """Return a sample's points in the store's format. `placement` states where the node runs."""

    def encode(self, tick: NodeTick) -> list[bytes]:
        if tick.sample is None:
            return []
        if tick.header.catalogue is not self._recorded:
            self._recorded = tick.header.catalogue
            self._bounded = BoundedLabels(self._recorded)
        sample = replace(tick.sample, values=self._bounded.values(tick.sample.values))
        return self.encode_sample(self._bounded.catalogue, tick.identity, sample, tick.placement)

    def size_bytes(self, point: bytes) -> int:
        return len(point)

    def text(self, point: bytes) -> bytes:
        return point
