"""What is worth seeing of a node or a cluster, each said once: panels show it, rules record it, alerts compare it."""
