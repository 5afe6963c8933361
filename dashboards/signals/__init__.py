"""Signals: the definitions that panels, recording rules and alerts share."""
