"""Recording over SSH."""
