"""The data model: metrics, identities, snapshots, samples, histograms, rates and clocks."""
