"""Show where a running attempt stands: the stacks of its worker, which goes on."""
