"""What Prometheus scrapes: the node's raw values, and how the agent itself fares."""
