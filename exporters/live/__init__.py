"""Frames of a cluster for `casstat top`: rows of numbers made of its samples, and their history."""
