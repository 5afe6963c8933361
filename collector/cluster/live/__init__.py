"""The live cluster: samples from casstat agents and Jolokia agents, assembled into intervals."""
