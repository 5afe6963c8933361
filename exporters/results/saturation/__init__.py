"""Saturation: which resource limited a run."""
