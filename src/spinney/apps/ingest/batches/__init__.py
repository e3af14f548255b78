"""Batches: their stages, the files kept for them outside of their jobs, and checks of their guarantees."""
