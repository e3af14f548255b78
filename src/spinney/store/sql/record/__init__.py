"""Recording outcomes: group commits, the fast way for plain completions, throughput, circuit breakers."""
