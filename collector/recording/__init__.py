"""The journal: a node's snapshots on disk, which are the input for replay, merges and shipping."""
