"""Homes: in a store with local folders, which host has the folder of a job.

Operators can release jobs from a lost host (``rehome``); files on other hosts are fetched through the store.
"""
