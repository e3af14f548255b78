"""One verb for many jobs: planned, previewed, done in bounded steps, stopped by a canary."""
