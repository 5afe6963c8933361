"""Records a run for each combination of parameters, for `casstat sweep`."""
