"""Nodes as operators see them: drain, resume, slots."""
