"""What every operation on a store needs, whoever asks for it and through which door: whose it is, what that person
may see and do, which jobs it concerns, and what refusals leave behind.

A feature's operations are commands (``spinney.features.holds.commands``, say), or a ``Service`` of its own on top of
this; ``spinney.control.Control`` bundles them for one person on one store.
"""
