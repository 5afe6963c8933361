"""What several sinks are made of."""
