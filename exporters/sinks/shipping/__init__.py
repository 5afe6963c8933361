"""Shipping: sends the journal to a sink, complete and in order, across store failures and restarts."""
