"""Many nodes as one: aggregation, merging of recordings on a grid of intervals."""
