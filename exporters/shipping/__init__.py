"""Shipping: sends the journal to a sink, in order and complete, across failures of the store and restarts."""
