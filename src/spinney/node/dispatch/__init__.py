"""From claimed leases to recorded outcomes: which lanes the node claims from, which slot and worker an attempt gets,
what happens when a worker dies, and the group commits that record results."""
