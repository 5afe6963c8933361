"""Speed and memory, measured on real nodes and printed as ratios within one run. Nothing here is a test."""
