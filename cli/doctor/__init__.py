"""The checks of `casstat doctor`: one file per subject."""
