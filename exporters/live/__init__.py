"""A cluster's frames for `casstat top`: rows of numbers computed from its samples, and their history."""
