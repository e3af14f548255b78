"""Which jobs a node gets next: fair, within limits, in one short transaction."""
