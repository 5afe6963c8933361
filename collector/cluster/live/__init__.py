"""The cluster live: samples from agents and Jolokias, assembled interval by interval."""
