"""Records runs: the command on its hosts, the nodes sampled meanwhile, and the recovery of interrupted runs."""
