"""Accounts of users: their rights, passwords and tokens, how they sign in, and their sessions."""
