"""Reading lines, fields, names and histograms from the files of load generators."""
