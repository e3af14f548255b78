"""Recording outcomes: group commits, the fast path for plain completions, throughput, circuit breakers."""
