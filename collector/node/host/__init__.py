"""The machine as a source: device discovery, and one module per subject that defines METRICS and `read`."""
