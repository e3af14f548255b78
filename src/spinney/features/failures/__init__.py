"""Failures grouped by their cause."""
