"""Filters of the list of jobs that users saved under a name: seen in every browser, by their owner alone."""
