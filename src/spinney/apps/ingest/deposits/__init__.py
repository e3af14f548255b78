"""Deposits: their orders, descriptions, identities, priorities and states, and early checks."""
