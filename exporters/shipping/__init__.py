"""Shipping: what is recorded goes to a sink, in order and whole, whatever becomes of the store meanwhile."""
