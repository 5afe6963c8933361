"""Code shared by the commands that process recordings: arguments, merging and shipping."""
