"""The results of load generators: throughput, errors and latency as the client saw them."""
