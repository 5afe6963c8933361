"""The Prometheus exposition: raw values of the node, and self-metrics of the agent."""
