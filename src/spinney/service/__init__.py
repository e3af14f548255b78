"""What every operation on a store needs, whoever its caller is and wherever the call comes from: the caller's identity,
what the caller may see and do, which jobs the operation concerns, and how refusals are recorded.

A feature's operations are commands (``spinney.features.holds.commands``, say), or a ``Service`` of its own on top of
this; ``spinney.control.Control`` reaches them for one caller on one store.
"""
