"""The checks of `casstat doctor`, one file per subject, and the output of their findings."""
