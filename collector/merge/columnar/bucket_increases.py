"""The bucket increases of a block's histograms as flat arrays."""

from dataclasses import dataclass

import numpy as np

from collector.merge.columns import Bools, Floats, Ints


@dataclass(frozen=True)
class BucketIncreases:
    """The increases of histograms' buckets, ordered by column and line.

    lines, columns      the line and the column of each changed histogram.
    sizes               its number of changed buckets; at least 1.
    buckets, increases  the changed buckets, in ascending order for each histogram, and their increases.
    """

    lines: Ints
    columns: Ints
    sizes: Ints
    buckets: Ints
    increases: Ints

    @property
    def starts(self) -> Ints:
        """The index of each histogram's first bucket."""
        return np.cumsum(self.sizes) - self.sizes

    def sums(self, amounts: Ints | Floats) -> Ints | Floats:
        """Return the sum of the buckets' amounts for each histogram."""
        return np.add.reduceat(amounts, self.starts) if len(self.sizes) else amounts

    def kept(self, is_kept: Bools) -> "BucketIncreases":
        """Return the increases of some of the histograms."""
        if is_kept.all():
            return self
        is_bucket_kept = np.repeat(is_kept, self.sizes)
        return BucketIncreases(
            self.lines[is_kept],
            self.columns[is_kept],
            self.sizes[is_kept],
            self.buckets[is_bucket_kept],
            self.increases[is_bucket_kept],
        )
