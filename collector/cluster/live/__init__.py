"""The live cluster: samples from agents and Jolokia agents, assembled into intervals."""
