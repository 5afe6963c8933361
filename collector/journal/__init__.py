"""The journal: the snapshots of a node on disk, from which replay, merges and shipping read."""
