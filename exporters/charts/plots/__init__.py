"""The plots, one file each."""
