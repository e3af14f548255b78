"""Queries for people: lists, counts, filters, by the shortest access path through narrow tables and indexes."""
