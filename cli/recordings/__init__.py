"""Code for the commands that process recordings: arguments, merging, plotting and shipping."""
