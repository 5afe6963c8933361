"""One file per source. A file of the node's metrics has BEANS; one of the machine's has METRICS and `read`."""
