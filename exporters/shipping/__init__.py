"""Pushing samples to sinks: what is the same for all of them."""
