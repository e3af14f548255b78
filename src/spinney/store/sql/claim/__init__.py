"""Claims: which jobs a node gets next, fairly and within limits, in one short transaction."""
