"""Live clusters: the ticks of many nodes, as they arrive."""
