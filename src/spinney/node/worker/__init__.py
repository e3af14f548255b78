"""What runs inside a worker process: the loop that takes attempts, the ways in which a stage is called, and what
is put back or kept between two attempts. Nothing here opens a store. The supervisor's side is
``spinney.node.workers``.
"""
