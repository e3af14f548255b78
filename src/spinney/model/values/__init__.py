"""Small values that check themselves: names, durations, paths, addresses, limits."""
