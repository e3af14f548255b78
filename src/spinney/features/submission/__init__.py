"""Submitting jobs and batches, and waiting for them."""
