"""Locks as operators see them: who has which, capacities, freeing one by hand."""
