"""The journal: a node's snapshots on disk, the input of replay, merges and shipping."""
