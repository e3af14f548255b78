"""Assign a tree of jobs to another collection."""
