"""Figures for people and monitors: statistics of queues and nodes, the board of ``spinney top``, the overview,
metrics.
"""
