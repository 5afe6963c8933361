"""Commands on recordings: their arguments, merging and shipping."""
