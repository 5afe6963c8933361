"""Overlaid plots of several runs, aligned by phase."""
